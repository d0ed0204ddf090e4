import { KubelingError } from '../errors.ts';
import { type FamilyHead, headText, type Labels, labelText } from './instruments.ts';

/** The instrument of one series. */
export interface Instrument {
  /** All its lines, each with its line feed. `labels` is the text between the braces. */
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

/** What a family needs of its registry. */
export interface FamilyLimits {
  readonly maxSeries: number;
  /** Called each time a series beyond the limit is requested. */
  readonly onOverflow: (family: string) => void;
}

/**
 * One metric with all its series. Keep the result of `with` where the labels are constant: using it
 * is one addition, resolving it builds and looks up the labels.
 */
export class Family<L extends string, I extends Instrument> {
  readonly head: FamilyHead;
  readonly #names: readonly L[];
  readonly #limits: FamilyLimits;
  readonly #create: () => I;
  readonly #series = new Map<string, Series<I>>();
  /** Receives measurements beyond the limit; it is never exposed. */
  readonly #overflow: I;

  constructor(head: FamilyHead, names: readonly L[], make: () => I, limits: FamilyLimits) {
    this.head = head;
    this.#names = names;
    this.#create = make;
    this.#limits = limits;
    this.#overflow = make();
    // Without labels there is one series, which exists from the start with zero.
    if (names.length === 0) this.with({} as Record<L, string>);
  }

  get size(): number {
    return this.#series.size;
  }

  /** The series of these labels. A removed one still counts, but is no longer exposed. */
  with(labels: Readonly<Record<L, string>>): I {
    const key = labelText(this.#names, labels);
    return this.#series.get(key)?.instrument ?? this.#add(key, labels);
  }

  /**
   * Removes the series that have all the given labels (all series if none are given); returns their
   * number.
   */
  remove(labels?: Readonly<Partial<Record<L, string>>>): number {
    const wanted = Object.entries(labels ?? {}) as [L, string][];
    let removed = 0;
    for (const [key, series] of this.#series) {
      if (!wanted.every(([name, value]) => series.labels[name] === value)) continue;
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
    // Only the declared labels, copied: the caller may reuse its object.
    const own = Object.fromEntries(this.#names.map((name) => [name, labels[name]]));
    this.#series.set(key, { labels: own, instrument });
    return instrument;
  }
}

/** Rejects names that the format does not allow, naming every invalid one. */
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
    `Cannot make the metric ${name} as its names must be allowed and unique: ${list}`,
  );
}
