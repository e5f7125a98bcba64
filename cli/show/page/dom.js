// Elements. Text only ever becomes text: no string of a plan is read as HTML.

const byId = (id) => document.getElementById(id);

// element("td", { className: "soft" }, "text", child, [more children])
function element(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key === "data") Object.assign(node.dataset, value);
    else if (key === "label") node.setAttribute("aria-label", value);
    else if (key === "pressed") node.setAttribute("aria-pressed", value);
    else node[key] = value;
  }
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function swatch(colour, className) {
  const node = element("span", { className: "swatch " + (className || "") });
  if (colour) node.style.background = colour;
  return node;
}
