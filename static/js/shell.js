// What every page needs: errors of requests as toasts, keys, times, the state of the connection.
import { bindKeys } from "./keys.js";
import { bindLive } from "./live.js";
import { bindTimes } from "./time.js";
import { bindToasts } from "./toasts.js";

bindToasts();
bindKeys();
bindLive();
bindTimes();
