"use strict";
(() => {
  const log = document.getElementById("log");
  if (log) {
    const state = document.getElementById("log-state");
    const most = 500;
    const isAtEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    log.scrollTop = log.scrollHeight;
    const stream = new EventSource(log.dataset.stream);
    stream.onopen = () => { state.textContent = "Live: new lines appear by themselves."; };
    stream.onerror = () => { state.textContent = "Not connected: trying again."; };
    stream.onmessage = ({ data }) => {
      const follow = isAtEnd();
      const line = document.createElement("li");
      line.textContent = data;
      const level = / (WARN|ERROR|FATAL) /.exec(data.slice(0, 40));
      if (level) line.className = level[1] === "WARN" ? "warn" : "bad";
      log.append(line);
      while (log.children.length > most) log.firstElementChild.remove();
      if (follow) log.scrollTop = log.scrollHeight;
    };
  }
})();
