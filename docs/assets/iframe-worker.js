/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The search of the site runs in a worker, and browsers give none to pages that are read from a folder. There this makes one of a hidden frame, so that
 * nothing has to be fetched from another host for it. The frame has the page's origin, so both can call each other.
 */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = '<script>postMessage = data => frameElement.worker.said(data);</' + 'script><script src="' + encodeURI(decodeURI(url)) + '"></' + 'script>';
      this.frame.worker = this;
      this.frame.onload = () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach(data => this.tell(data));
      };
      document.body.appendChild(this.frame);
    }
    /* What the frame's script posts. */
    said(data) {
      const event = new MessageEvent("message", {data: data});
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }
    tell(data) {
      const inside = this.frame.contentWindow;
      inside.dispatchEvent(new inside.MessageEvent("message", {data: data}));
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.tell(data);
    }
    terminate() {
      this.frame.remove();
    }
  };
}
