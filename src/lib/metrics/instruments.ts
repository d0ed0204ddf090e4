import { KubelingError } from '../errors.ts';

/** A metric that only increases: negative increments and NaN are ignored. */
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
  /** The bounds in ascending order, all finite. */
  readonly bounds: readonly number[];
  /** The `le` label text of each bound, and of the +Inf bucket after them. */
  readonly labels: readonly string[];
}

/** A histogram: counts observations by bucket. NaN is ignored. */
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

  /** The index of the first bucket whose bound is at least the value. */
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

/** Returns `count` bucket bounds, each `factor` times the previous one. */
export function exponentialBuckets(start: number, factor: number, count: number): number[] {
  const bounds: number[] = [];
  for (let bound = start; bounds.length < count; bound *= factor) bounds.push(bound);
  return bounds;
}

/** Every histogram has the +Inf bucket, whether its bounds contain it or not. */
export function bucketsOf(name: string, bounds: readonly number[]): Buckets {
  const finite = bounds.at(-1) === Number.POSITIVE_INFINITY ? bounds.slice(0, -1) : [...bounds];
  const ascending = finite.every(
    (bound, index) => Number.isFinite(bound) && (index === 0 || bound > (finite[index - 1] ?? 0)),
  );
  if (!ascending) {
    throw new KubelingError(
      'BUG',
      `Cannot create the metric ${name} as its buckets must be ascending numbers: current value is ${bounds.join(' ')}`,
    );
  }
  const labels = [...finite, Number.POSITIVE_INFINITY].map((bound) => `le="${numberText(bound)}"`);
  return { bounds: finite, labels };
}

/** Writes the text exposition format 0.0.4, byte for byte like the Go kubelet. */

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

/** The labels as text between the braces, `a="1",b="2"`, which identifies a series. */
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
 * The shortest text that parses to the number; from a million on with an exponent of at least two
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

/** The counter, gauge or histogram of one series. */
export interface Instrument {
  /**
   * Returns all lines of the series, each with its line feed. `labels` is the text between the
   * braces.
   */
  expose(name: string, labels: string): string;
}

export interface FamilyOptions<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly L[];
}

interface Series<I> {
  readonly labels: Labels;
  readonly instrument: I;
}

/** The series limit of the registry, for its metric families. */
export interface FamilyLimits {
  readonly maxSeries: number;
  /** Called each time a series beyond the limit is requested. */
  readonly onOverflow: (family: string) => void;
}

/**
 * One metric with all its series. Callers with constant labels should keep the result of `with`:
 * updating it costs one addition, while `with` builds and looks up the labels.
 */
export class Family<L extends string, I extends Instrument> {
  readonly head: FamilyHead;
  readonly #names: readonly L[];
  readonly #limits: FamilyLimits;
  readonly #create: () => I;
  readonly #series = new Map<string, Series<I>>();
  /**
   * A series that receives the measurements of all series beyond the limit; it is never exposed.
   */
  readonly #overflow: I;

  constructor(head: FamilyHead, names: readonly L[], create: () => I, limits: FamilyLimits) {
    this.head = head;
    this.#names = names;
    this.#create = create;
    this.#limits = limits;
    this.#overflow = create();
    // A metric without labels has one series, which exists from the start with zero.
    if (names.length === 0) this.with({} as Record<L, string>);
  }

  get size(): number {
    return this.#series.size;
  }

  /**
   * Returns the series with these labels. After `remove` a returned series can still be updated,
   * but is no longer exposed.
   */
  with(labels: Readonly<Record<L, string>>): I {
    const key = labelText(this.#names, labels);
    return this.#series.get(key)?.instrument ?? this.#add(key, labels);
  }

  /**
   * Removes the series that have all the given labels (all series if none are given); returns their
   * number.
   */
  remove(labels?: Readonly<Partial<Record<L, string>>>): number {
    const selected = Object.entries(labels ?? {}) as [L, string][];
    let removed = 0;
    for (const [key, series] of this.#series) {
      if (!selected.every(([name, value]) => series.labels[name] === value)) continue;
      this.#series.delete(key);
      removed++;
    }
    return removed;
  }

  expose(): string {
    if (this.#series.size === 0) return '';
    let text = headText(this.head);
    for (const [key, { instrument }] of this.#series) text += instrument.expose(this.head.name, key);
    return text;
  }

  #add(key: string, labels: Readonly<Record<L, string>>): I {
    if (this.#series.size >= this.#limits.maxSeries) {
      this.#limits.onOverflow(this.head.name);
      return this.#overflow;
    }
    const instrument = this.#create();
    // Copies only the declared labels, because the caller may reuse its object.
    const own = Object.fromEntries(this.#names.map((name) => [name, labels[name]]));
    this.#series.set(key, { labels: own, instrument });
    return instrument;
  }
}

/** Throws for metric and label names that the format does not allow, naming every invalid one. */
export function checkNames(name: string, labels: readonly string[], reserved: readonly string[]): void {
  const wrong = labels.filter((label, index) => {
    const known = labels.indexOf(label) !== index || reserved.includes(label);
    return known || !/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(label) || label.startsWith('__');
  });
  if (!/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) wrong.unshift(name);
  if (wrong.length === 0) return;
  const list = wrong.map((word) => JSON.stringify(word)).join(', ');
  throw new KubelingError(
    'BUG',
    `Cannot create the metric ${name} as its names must be allowed and unique: ${list}`,
  );
}
