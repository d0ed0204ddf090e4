import { KubelingError } from '../errors.ts';
import { nextTurn } from '../yielding-counter.ts';
import {
  bucketsOf,
  Counter,
  checkNames,
  Family,
  type FamilyHead,
  type FamilyLimits,
  type FamilyOptions,
  Gauge,
  Histogram,
  headText,
  type Instrument,
  type Labels,
  labelText,
  type MetricType,
  sampleText,
} from './instruments.ts';

export type CounterFamily<L extends string = never> = Family<L, Counter>;
export type GaugeFamily<L extends string = never> = Family<L, Gauge>;
export type HistogramFamily<L extends string = never> = Family<L, Histogram>;

export interface HistogramOptions<L extends string> extends FamilyOptions<L> {
  readonly buckets: readonly number[];
}

/** A value that is computed at exposition, not stored. */
export interface Sample {
  /** Or the result of `labelText`. */
  readonly labels?: Labels | string;
  /** Unknown families are omitted. */
  readonly value: number | undefined;
  readonly timestampMs?: number;
}

export interface SampledFamily extends FamilyHead {
  readonly type: 'counter' | 'gauge' | 'untyped';
  readonly samples: Iterable<Sample>;
}

/** Returns its families at this moment. May be called again before an earlier call has resolved. */
export type Collector = (signal: AbortSignal) => Iterable<SampledFamily> | Promise<Iterable<SampledFamily>>;

export interface MetricRegistryOptions {
  /**
   * Limit of series per family; default 10,000. Measurements beyond it go to one overflow series.
   */
  readonly maxSeries?: number;
  /** Called for each collector that failed; the others are exposed. */
  readonly onError: (error: unknown) => void;
}

/** The event loop gets a turn after so many samples. */
const samplesPerTurn = 1_000;
const overflowName = 'kubeling_metric_series_overflow_total';

/** All metrics of one endpoint. Several registries may coexist; there is no global one. */
export class MetricRegistry {
  readonly #families = new Map<string, Family<string, Instrument>>();
  readonly #collectors = new Set<Collector>();
  readonly #maxSeries: number;
  readonly #onError: (error: unknown) => void;
  readonly #overflow: CounterFamily<'family'>;
  readonly #collectorErrors: CounterFamily;

  constructor(options: MetricRegistryOptions) {
    this.#maxSeries = options.maxSeries ?? 10_000;
    this.#onError = options.onError;
    this.#overflow = this.counter({
      name: overflowName,
      help: 'Times a series was refused because its metric had too many.',
      labels: ['family'],
    });
    this.#collectorErrors = this.counter({
      name: 'kubeling_metric_collector_errors_total',
      help: 'Times a source of metrics failed when it was asked.',
    });
  }

  counter<const L extends string = never>(options: FamilyOptions<L>): CounterFamily<L> {
    return this.#add('counter', options, [], () => new Counter());
  }

  gauge<const L extends string = never>(options: FamilyOptions<L>): GaugeFamily<L> {
    return this.#add('gauge', options, [], () => new Gauge());
  }

  histogram<const L extends string = never>(options: HistogramOptions<L>): HistogramFamily<L> {
    const buckets = bucketsOf(options.name, options.buckets);
    return this.#add('histogram', options, ['le'], () => new Histogram(buckets));
  }

  /** Calls the collector at every exposition until the result is disposed. */
  collect(collector: Collector): Disposable {
    this.#collectors.add(collector);
    return { [Symbol.dispose]: () => void this.#collectors.delete(collector) };
  }

  /**
   * All metrics as text, sorted by name. Of a duplicate name a registered metric wins, else the
   * first collector.
   */
  async expose(signal: AbortSignal): Promise<string> {
    const sampled = await Promise.all(
      [...this.#collectors].map((collector) => this.#collectFrom(collector, signal)),
    );
    signal.throwIfAborted();
    const texts = new Map<string, string>();
    for (const [name, text] of sampled.flat()) if (!texts.has(name)) texts.set(name, text);
    for (const [name, family] of this.#families) texts.set(name, family.expose());
    return [...texts.keys()]
      .sort()
      .map((name) => texts.get(name))
      .join('');
  }

  #add<L extends string, I extends Instrument>(
    type: MetricType,
    options: FamilyOptions<L>,
    reserved: readonly string[],
    create: () => I,
  ): Family<L, I> {
    const { name, help, labels = [] } = options;
    checkNames(name, labels, reserved);
    if (this.#families.has(name)) {
      throw new KubelingError('BUG', `Cannot make the metric ${name} as there must be one only`);
    }
    const family = new Family({ name, help, type }, labels, create, this.#limitsOf(name));
    this.#families.set(name, family as unknown as Family<string, Instrument>);
    return family;
  }

  /** The overflow counter has one series per other metric, so it needs no limit. */
  #limitsOf(name: string): FamilyLimits {
    return name === overflowName
      ? { maxSeries: Number.POSITIVE_INFINITY, onOverflow: () => {} }
      : { maxSeries: this.#maxSeries, onOverflow: (family) => this.#overflow.with({ family }).inc() };
  }

  /**
   * The text of each family of a collector. A collector that fails in between adds nothing, and is
   * counted.
   */
  async #collectFrom(collector: Collector, signal: AbortSignal): Promise<[string, string][]> {
    try {
      const texts: [string, string][] = [];
      let left = samplesPerTurn;
      for (const family of await collector(signal)) {
        const { text, samples } = this.#sampledText(family);
        texts.push([family.name, text]);
        left -= samples;
        if (left > 0) continue;
        await nextTurn();
        left = samplesPerTurn;
      }
      return texts;
    } catch (error) {
      if (!signal.aborted) {
        this.#collectorErrors.with({}).inc();
        this.#onError(error);
      }
      return [];
    }
  }

  /** Duplicate or too many series would make a scraper reject the complete page. */
  #sampledText(family: SampledFamily): { readonly text: string; readonly samples: number } {
    const names = new Set<string>();
    let text = '';
    for (const { labels = '', value, timestampMs } of family.samples) {
      if (value === undefined) continue;
      const key = typeof labels === 'string' ? labels : labelText(Object.keys(labels), labels);
      if (names.has(key)) continue;
      if (names.size >= this.#maxSeries) {
        this.#overflow.with({ family: family.name }).inc();
        break;
      }
      names.add(key);
      text += sampleText(family.name, key, value, timestampMs);
    }
    return { text: text === '' ? '' : headText(family) + text, samples: names.size };
  }
}
