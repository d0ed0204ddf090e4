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

/** A value that a collector computes at exposition, and the registry does not store. */
export interface Sample {
  /** The labels as a record, or as the text from `labelText`. */
  readonly labels?: Labels | string;
  /** The value; a sample with undefined value is omitted. */
  readonly value: number | undefined;
  readonly timestampMs?: number;
}

export interface SampledFamily extends FamilyHead {
  readonly type: 'counter' | 'gauge' | 'untyped';
  readonly samples: Iterable<Sample>;
}

/**
 * Returns its metric families with the current values. May be called again before an earlier call
 * has resolved.
 */
export type Collector = (signal: AbortSignal) => Iterable<SampledFamily> | Promise<Iterable<SampledFamily>>;

export interface MetricRegistryOptions {
  /**
   * The maximum number of series per family, 10,000 by default. Measurements beyond it go to one
   * overflow series.
   */
  readonly maxSeries?: number;
  /**
   * Called with the error of each collector that failed; the metrics of the other collectors are
   * exposed.
   */
  readonly onError: (error: unknown) => void;
}

/** The exposition yields to the event loop after this many samples. */
const samplesPerTurn = 1_000;
const overflowName = 'kubeling_metric_series_overflow_total';

/** All metrics of one endpoint. Several registries may coexist; no registry is global. */
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
   * Writes all metrics as text, sorted by name. If several metrics have the same name, only one is
   * written: the registered metric, or else that of the first collector.
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
      throw new KubelingError('BUG', `Cannot create the metric ${name} as a metric with this name exists`);
    }
    const family = new Family({ name, help, type }, labels, create, this.#limitsOf(name));
    this.#families.set(name, family as unknown as Family<string, Instrument>);
    return family;
  }

  /** The overflow counter has one series per metric, so it needs no limit. */
  #limitsOf(name: string): FamilyLimits {
    return name === overflowName
      ? { maxSeries: Number.POSITIVE_INFINITY, onOverflow: () => {} }
      : { maxSeries: this.#maxSeries, onOverflow: (family) => this.#overflow.with({ family }).inc() };
  }

  /**
   * Returns the text of each family of a collector. A collector that fails during the call adds no
   * metrics, and is counted.
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

  /** Duplicate or too many series would make a scraper reject the complete response. */
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
