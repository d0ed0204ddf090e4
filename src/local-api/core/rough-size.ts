const ofText = 16;
const ofField = 8;
const ofObject = 32;

/** About how many bytes of memory a value takes: enough to tell a large object from a small one. */
export function roughSize(value: unknown): number {
  if (typeof value === 'string') return ofText + value.length;
  if (typeof value !== 'object' || value === null) return ofField;
  return Object.values(value).reduce((sum: number, inner) => sum + ofField + roughSize(inner), ofObject);
}
