/**
 * Parses the JSON of an API server. A null field counts as unset, as everywhere in Kubernetes;
 * other components may write one, for example as the time of a condition. Throws for text that is
 * not JSON.
 */
export function parseAnswer(text: string): unknown {
  if (!text.includes(nullField)) return JSON.parse(text);
  // Every condition of every pod contains a null field: removing them from the text is faster than
  // walking through all values.
  const plain = text.replace(plainNullFields, '');
  const value: unknown = JSON.parse(plain);
  return plain.includes(nullField) ? withoutNulls(value) : value;
}

const nullField = ':null';
/**
 * Matches a null field with the comma before or after it. Does not match inside a string: quotes
 * there are escaped.
 */
const plainNullFields = /,"\w+":null(?=[,}])|(?<!\\)"\w+":null(?:,|(?=}))/g;

/** Returns the same object if it has no null fields. */
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
