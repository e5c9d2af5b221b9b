// Places in a text. JavaScript counts UTF-16 units, the store counts code points, and people see
// grapheme clusters: a family of four emoji is one of these, seven code points and eleven units.

/** A text with the places at which it may be cut. Offsets are UTF-16 units unless named. */
export class Measured {
  constructor(text, language) {
    this.text = text;
    this.edges = cuts(text, language, "grapheme");
    this.words = null;
    this.language = language;
    // For each unit, how many code points lie before it.
    this.points = new Uint32Array(text.length + 1);
    let count = 0;
    for (let at = 0; at < text.length; at++) {
      this.points[at] = count;
      const low = (text.charCodeAt(at) & 0xfc00) === 0xdc00;
      const pair = low && at > 0 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800;
      // The second half of a pair belongs to the code point that began before it.
      if (pair) this.points[at] = count - 1;
      else count++;
    }
    this.points[text.length] = count;
  }

  /** The code point offset of a UTF-16 one. */
  toPoints(at) {
    return this.points[Math.max(0, Math.min(at, this.text.length))];
  }

  /** The UTF-16 offset of a code point one. */
  toUnits(point) {
    let low = 0;
    let high = this.text.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.points[middle] < point) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The last edge of a grapheme at or before `at`. */
  floor(at) {
    return this.edges[place(this.edges, at)];
  }

  /** The first edge of a grapheme at or after `at`. */
  ceil(at) {
    const found = place(this.edges, at);
    return this.edges[found] === at ? at : this.edges[Math.min(found + 1, this.edges.length - 1)];
  }

  /** The edge of a grapheme `way` (1 or -1) from `at`, or the end of the text. */
  step(at, way) {
    if (way > 0) return this.ceil(Math.min(at + 1, this.text.length));
    return this.floor(Math.max(at - 1, 0));
  }

  /** The edge of a word `way` from `at`; in Chinese as well, where no spaces part words. */
  stepWord(at, way) {
    this.words ??= wordEdges(this.text, this.language);
    if (way > 0) return this.words.ends.find((end) => end > at) ?? this.text.length;
    return this.words.starts.findLast((start) => start < at) ?? 0;
  }

  /** [start, end) widened to whole graphemes, without the blanks around it; null for nothing. */
  snap(start, end) {
    let from = this.floor(Math.min(start, end));
    let to = this.ceil(Math.max(start, end));
    const blank = (a, b) => !this.text.slice(a, b).trim();
    while (from < to && blank(from, this.step(from, 1))) from = this.step(from, 1);
    while (from < to && blank(this.step(to, -1), to)) to = this.step(to, -1);
    return from < to ? [from, to] : null;
  }
}

/** The offsets at which `text` may be cut, its ends among them. */
function cuts(text, language, granularity) {
  const edges = [];
  if (globalThis.Intl?.Segmenter) {
    const segments = segmenter(language, granularity).segment(text);
    for (const { index } of segments) edges.push(index);
  } else {
    let at = 0;
    for (const point of text) {
      edges.push(at);
      at += point.length;
    }
  }
  if (!edges.length) edges.push(0);
  if (edges.at(-1) !== text.length) edges.push(text.length);
  return edges;
}

function wordEdges(text, language) {
  const starts = [];
  const ends = [];
  if (globalThis.Intl?.Segmenter) {
    for (const { index, segment, isWordLike } of segmenter(language, "word").segment(text)) {
      if (!isWordLike) continue;
      starts.push(index);
      ends.push(index + segment.length);
    }
  } else {
    for (const found of text.matchAll(/[\p{L}\p{N}\p{M}]+/gu)) {
      starts.push(found.index);
      ends.push(found.index + found[0].length);
    }
  }
  return { starts, ends };
}

function segmenter(language, granularity) {
  try {
    return new Intl.Segmenter(language || undefined, { granularity });
  } catch {
    // The language of an imported text may be anything.
    return new Intl.Segmenter(undefined, { granularity });
  }
}

/** The index of the last of the sorted `edges` at or before `at`. */
function place(edges, at) {
  let low = 0;
  let high = edges.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (edges[middle] <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Characters that cannot be seen or turn the line around; the same as in components/base/html.py. */
export const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

/** How such a character is shown: by its number. */
export const codeOf = (character) =>
  `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
