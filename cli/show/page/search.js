// Search: storages by their name or their writer's, and launches by theirs.

const search = { matches: [], at: -1 };

function find(query) {
  state.query = query;
  const wanted = query.trim().toLowerCase(), has = (name) => name.toLowerCase().includes(wanted);
  search.matches = [];
  search.at = -1;
  state.found = null;
  if (wanted) {
    const launches = plan.launch.name.map(has);
    state.found = new Uint8Array(plan.holders);
    for (let h = 0; h < plan.holders; h++) {
      if (!launches[plan.holder.writer[h]] && !has(plan.holder.name[h])) continue;
      state.found[h] = 1;
      search.matches.push({ holder: h });
    }
    launches.forEach((isFound, v) => isFound && search.matches.push({ launch: v }));
    plan.persistent.forEach(([name], i) => has(name) && search.matches.push({ persistent: i }));
  }
  byId("hits").textContent = wanted ? countText(search.matches.length) + " found" : "";
  redraw();
}

function nextMatch(step) {
  if (!search.matches.length) return;
  search.at = (search.at + step + search.matches.length) % search.matches.length;
  choose(search.matches[search.at], true);
  byId("hits").textContent = countText(search.at + 1) + " of " + countText(search.matches.length);
}
