import { KubelingError } from '../errors.ts';
import type { Instrument } from './family.ts';

/** Only grows: negative increments and NaN are ignored. */
export class Counter implements Instrument {
  #value = 0;

  get value(): number {
    return this.#value;
  }

  inc(by = 1): void {
    if (by > 0) this.#value += by;
  }

  expose(name: string, labels: string): string {
    return sampleText(name, labels, this.#value);
  }
}

export class Gauge implements Instrument {
  #value = 0;

  get value(): number {
    return this.#value;
  }

  set(value: number): void {
    this.#value = value;
  }

  inc(by = 1): void {
    this.#value += by;
  }

  dec(by = 1): void {
    this.#value -= by;
  }

  expose(name: string, labels: string): string {
    return sampleText(name, labels, this.#value);
  }
}

/** The upper bounds of a histogram, shared by all series of a family. */
export interface Buckets {
  /** Ascending and finite. */
  readonly bounds: readonly number[];
  /** The label of each bound, and of the +Inf bucket after them. */
  readonly labels: readonly string[];
}

/** Counts observations by size. NaN is ignored. */
export class Histogram implements Instrument {
  readonly #buckets: Buckets;
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(buckets: Buckets) {
    this.#buckets = buckets;
    this.#counts = new Float64Array(buckets.labels.length);
  }

  get count(): number {
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  get sum(): number {
    return this.#sum;
  }

  observe(value: number): void {
    if (Number.isNaN(value)) return;
    this.#sum += value;
    const at = this.#bucketOf(value);
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  expose(name: string, labels: string): string {
    const more = labels === '' ? '' : `${labels},`;
    let text = '';
    let below = 0;
    for (const [index, label] of this.#buckets.labels.entries()) {
      below += this.#counts[index] ?? 0;
      text += sampleText(`${name}_bucket`, more + label, below);
    }
    return text + sampleText(`${name}_sum`, labels, this.#sum) + sampleText(`${name}_count`, labels, below);
  }

  /** The index of the first bucket whose bound is not below the value. */
  #bucketOf(value: number): number {
    const { bounds } = this.#buckets;
    let low = 0;
    let high = bounds.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((bounds[middle] ?? 0) < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** `count` bounds, each `factor` times the one before. */
export function exponentialBuckets(start: number, factor: number, count: number): number[] {
  const bounds: number[] = [];
  for (let bound = start; bounds.length < count; bound *= factor) bounds.push(bound);
  return bounds;
}

/** Every histogram has the +Inf bucket, declared or not. */
export function bucketsOf(name: string, bounds: readonly number[]): Buckets {
  const finite = bounds.at(-1) === Number.POSITIVE_INFINITY ? bounds.slice(0, -1) : [...bounds];
  const ascending = finite.every(
    (bound, index) => Number.isFinite(bound) && (index === 0 || bound > (finite[index - 1] ?? 0)),
  );
  if (!ascending) {
    throw new KubelingError(
      'BUG',
      `Cannot make the metric ${name} as its buckets must be ascending numbers: current value is ${bounds.join(' ')}`,
    );
  }
  const labels = [...finite, Number.POSITIVE_INFINITY].map((bound) => `le="${numberText(bound)}"`);
  return { bounds: finite, labels };
}

/** The text exposition format 0.0.4, byte for byte as the Go kubelet writes it. */

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

/** `a="1",b="2"`: the text between the braces, which identifies a series. */
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

/**
 * The shortest text that parses to the number; with an exponent from a million on, of at least two
 * digits.
 */
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
