// Measures a report's page: all parts opened, what does not fit, what lies over something else, what can hardly be read.
"use strict";
for (const part of document.querySelectorAll("details")) part.open = true;
const problems = [];
const name = (text) => JSON.stringify(text.trim().slice(0, 60));
const root = document.documentElement;
if (root.scrollWidth > window.innerWidth) problems.push(`the page is ${root.scrollWidth} wide, the window ${window.innerWidth}`);

// Each piece of text that is seen, line by line.
const pieces = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode;
  const parent = node.parentElement;
  if (!node.data.trim() || ["SCRIPT", "STYLE", "title"].includes(parent.tagName)) continue;
  const aside = parent.closest(".skip,thead"); // for screen readers alone where it is put out of sight
  if (aside && aside.getBoundingClientRect().right < -1000) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const box of range.getClientRects()) {
    if (box.width > 0.5 && box.height > 0.5) pieces.push({ box, text: node.data, parent, svg: parent.closest("svg"), scroll: parent.closest(".scroll") });
  }
}

for (const { box, text, svg, scroll, parent } of pieces) {
  if (svg) {
    const around = svg.getBoundingClientRect();
    const out = Math.max(around.left - box.left, box.right - around.right, around.top - box.top, box.bottom - around.bottom);
    if (out > 1) problems.push(`text is ${out.toFixed(1)} px outside of its picture: ${name(text)}`);
  } else if (!scroll && (box.left < -0.5 || box.right > window.innerWidth + 0.5)) {
    problems.push(`text is outside of the window: ${name(text)}`);
  }
  const section = parent.closest("section");
  if (section && !scroll && box.right > section.getBoundingClientRect().right + 0.5) problems.push(`text is outside of its section: ${name(text)}`);
}

// Texts over each other. Boxes of lines are higher than their letters: a few px of height do not count.
pieces.sort((one, other) => one.box.top - other.box.top);
for (let i = 0; i < pieces.length && problems.length < 50; i++) {
  for (let j = i + 1; j < pieces.length && pieces[j].box.top < pieces[i].box.bottom - 4; j++) {
    const [one, other] = [pieces[i], pieces[j]];
    if (one.scroll !== other.scroll) continue; // what is scrolled out of sight
    const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
    const down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
    if (across > 1 && down > 4) problems.push(`texts lie over each other: ${name(one.text)} and ${name(other.text)}`);
  }
}

// Contrast of text with what is behind it (WCAG 2: 4.5 at least).
const light = (color) => {
  const parts = color.map((part) => part / 255).map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const rgb = (text) => (text.match(/[\d.]+/g) || []).map(Number);
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = rgb(getComputedStyle(at).backgroundColor);
    if (color.length === 3 || color[3] === 1) return color.slice(0, 3);
  }
  return [255, 255, 255];
};
const seen = new Set();
for (const { parent, svg, text } of pieces) {
  const style = getComputedStyle(parent);
  const color = rgb(svg ? style.fill : style.color).slice(0, 3);
  const back = behind(svg ? svg.parentElement : parent);
  const [low, high] = [light(color), light(back)].sort((one, other) => one - other);
  const contrast = (high + 0.05) / (low + 0.05);
  const key = `${color} on ${back}`;
  if (contrast < 4.5 && !seen.has(key)) problems.push(`contrast ${contrast.toFixed(2)}, ${key}: ${name(text)}`);
  seen.add(key);
}

const measured = JSON.stringify({
  width: window.innerWidth,
  pieces: pieces.length,
  isDark: matchMedia("(prefers-color-scheme: dark)").matches,
  background: getComputedStyle(document.body).backgroundColor,
  problems,
});
parent.postMessage(measured, "*");
