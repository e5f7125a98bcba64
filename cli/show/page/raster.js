// Draws storages lower than a pixel: each pixel gets the mixture of the storages that cover it. A storage is added to
// a row of pixels at its start, and subtracted at its end; one sum along each row then gives
// all pixels. So the cost does not depend on how wide they are.

const raster = { width: 0, height: 0, sums: null, image: null, canvas: element("canvas"), used: false };

function clearRaster() {
  const width = Math.ceil(layout.width * ratio), height = Math.ceil(layout.map.height * ratio);
  if (raster.width !== width || raster.height !== height) {
    Object.assign(raster, { width, height, sums: new Float32Array((width + 1) * height * 4) });
    raster.canvas.width = width;
    raster.canvas.height = height;
    raster.image = new ImageData(width, height);
  } else if (raster.used) raster.sums.fill(0);
  raster.used = false;
}

// In pixels of the raster; `weight` is how solid.
function addToRaster(x0, x1, y0, y1, [r, g, b], weight) {
  const { width, height, sums } = raster;
  const from = Math.max(0, Math.min(width - 1, Math.floor(x0))), to = Math.min(width, Math.max(from + 1, Math.round(x1)));
  if (y1 - y0 < 0.35) y1 = y0 + 0.35; // everything is seen
  raster.used = true;
  for (let row = Math.max(0, Math.floor(y0)); row < y1 && row < height; row++) {
    const cover = (Math.min(y1, row + 1) - Math.max(y0, row)) * weight;
    if (cover <= 0) continue;
    const at = (row * (width + 1) + from) * 4, end = (row * (width + 1) + to) * 4;
    sums[at] += cover * r;
    sums[at + 1] += cover * g;
    sums[at + 2] += cover * b;
    sums[at + 3] += cover;
    sums[end] -= cover * r;
    sums[end + 1] -= cover * g;
    sums[end + 2] -= cover * b;
    sums[end + 3] -= cover;
  }
}

function drawRaster(g) {
  if (!raster.used) return;
  const { width, height, sums } = raster, pixels = raster.image.data;
  for (let row = 0, to = 0; row < height; row++) {
    let red = 0, green = 0, blue = 0, cover = 0;
    for (let i = row * (width + 1) * 4, x = 0; x < width; x++, i += 4, to += 4) {
      red += sums[i];
      green += sums[i + 1];
      blue += sums[i + 2];
      cover += sums[i + 3];
      if (cover < 0.01) {
        pixels[to + 3] = 0;
        continue;
      }
      pixels[to] = red / cover;
      pixels[to + 1] = green / cover;
      pixels[to + 2] = blue / cover;
      pixels[to + 3] = Math.min(255, cover * 255);
    }
  }
  raster.canvas.getContext("2d").putImageData(raster.image, 0, 0);
  g.drawImage(raster.canvas, layout.x, layout.map.y, width / ratio, height / ratio);
}
