/**
 * JSON as an API server writes it. A field that is null is one that is not set, as all of Kubernetes reads it: such as the
 * time of a condition that somebody else has written. Throws for what is no JSON.
 */
export function parseAnswer(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return text.includes('null') ? withoutNulls(value) : value;
}

/** The very same value where there are none. */
function withoutNulls(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const kept = value.map(withoutNulls);
    return kept.every((item, index) => item === value[index]) ? value : kept;
  }
  const entries = Object.entries(value);
  const kept = entries
    .filter(([, field]) => field !== null)
    .map(([name, field]) => [name, withoutNulls(field)] as const);
  const isSame =
    kept.length === entries.length && kept.every(([, field], index) => field === entries[index]?.[1]);
  return isSame ? value : Object.fromEntries(kept);
}
