/**
 * JSON as an API server writes it. A field that is null is one that is not set, as all of Kubernetes reads it: such as the
 * time of a condition that somebody else has written. Throws for what is no JSON.
 */
export function parseAnswer(text: string): unknown {
  if (!text.includes(nullField)) return JSON.parse(text);
  // Every condition of every pod has one: to take them out of the text is cheaper than to walk through all that is there.
  const plain = text.replace(plainNullFields, '');
  const value: unknown = JSON.parse(plain);
  return plain.includes(nullField) ? withoutNulls(value) : value;
}

const nullField = ':null';
/** With the comma before or behind it. A quote behind a backslash is part of a text, and so is what follows. */
const plainNullFields = /,"\w+":null(?=[,}])|(?<!\\)"\w+":null(?:,|(?=}))/g;

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
