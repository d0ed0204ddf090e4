export type { Family, FamilyOptions } from './instruments.ts';
export {
  type Counter,
  exponentialBuckets,
  type Gauge,
  type Histogram,
  type Labels,
  labelText,
  type MetricType,
  metricsContentType,
} from './instruments.ts';
export {
  type Collector,
  type CounterFamily,
  type GaugeFamily,
  type HistogramFamily,
  type HistogramOptions,
  MetricRegistry,
  type MetricRegistryOptions,
  type Sample,
  type SampledFamily,
} from './registry.ts';
