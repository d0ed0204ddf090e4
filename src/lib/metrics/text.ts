/** The text exposition format 0.0.4, byte for byte as the reference's own server writes it. */

export const metricsContentType = 'text/plain; version=0.0.4; charset=utf-8';

export type MetricType = 'counter' | 'gauge' | 'histogram' | 'untyped';
export type Labels = Readonly<Record<string, string>>;

export interface FamilyHead {
  readonly name: string;
  readonly help: string;
  readonly type: MetricType;
}

export function headText({ name, help, type }: FamilyHead): string {
  return `# HELP ${name} ${help.replace(/[\\\n]/g, escaped)}\n# TYPE ${name} ${type}\n`;
}

/** `a="1",b="2"`: what stands between the braces, and what tells one series from another. */
export function labelText(names: readonly string[], labels: Labels): string {
  let text = '';
  for (const name of names) text += `${text === '' ? '' : ','}${name}="${labelValue(labels[name] ?? '')}"`;
  return text;
}

export function sampleText(name: string, labels: string, value: number, timestampMs?: number): string {
  const series = labels === '' ? name : `${name}{${labels}}`;
  const time = timestampMs === undefined ? '' : ` ${Math.trunc(timestampMs)}`;
  return `${series} ${numberText(value)}${time}\n`;
}

/** The shortest text that gives the number back; with an exponent from a million on, and of two digits at least. */
export function numberText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const size = Math.abs(value);
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  if (size >= 1e-4 && size < 1e6) return String(value);
  return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
}

const specialInLabel = /[\\\n"]/;

function labelValue(value: string): string {
  return specialInLabel.test(value) ? value.replace(/[\\\n"]/g, escaped) : value;
}

function escaped(character: string): string {
  return character === '\n' ? '\\n' : `\\${character}`;
}
