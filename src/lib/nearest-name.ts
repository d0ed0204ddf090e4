/**
 * Returns the known name that a user most likely meant, or undefined if none is similar enough.
 * Case and separators are ignored: `max_pods` equals `maxPods`.
 */
export function nearestName(given: string, known: Iterable<string>): string | undefined {
  const plain = plainName(given.slice(0, maxNameLength));
  let best: { readonly name: string; readonly distance: number } | undefined;
  // The maximum edit distance: a third of the letters, at least one and at most four.
  const tolerance = Math.min(4, Math.max(1, Math.floor(plain.length / 3)));
  for (const name of known) {
    const other = plainName(name);
    if (Math.abs(other.length - plain.length) > tolerance) continue;
    const distance = editDistance(plain, other);
    if (best === undefined || distance < best.distance) best = { name, distance };
  }
  const near = best !== undefined && best.distance <= tolerance && best.distance < plain.length;
  return near ? best?.name : undefined;
}

/** Returns ` (did you mean X?)` or an empty text, as a suffix for a message. */
export function didYouMean(given: string, known: Iterable<string>): string {
  const name = nearestName(given, known);
  return name === undefined ? '' : ` (did you mean ${name}?)`;
}

const maxNameLength = 128;

function plainName(name: string): string {
  return name.toLowerCase().replace(/[-_.\s]/g, '');
}

/**
 * The edit distance: insertions, deletions, replacements and swaps of adjacent letters, each
 * counting one.
 */
export function editDistance(a: string, b: string): number {
  let twoAgo: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
          ? (twoAgo[j - 2] ?? 0) + 1
          : replaced;
      row.push(Math.min(replaced, swapped, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    twoAgo = previous;
    previous = row;
  }
  return previous[b.length] ?? 0;
}
