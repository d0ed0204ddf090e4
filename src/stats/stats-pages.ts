import { describeError, type Logger, MetricRegistry } from '../lib/index.ts';
import { type CadvisorSources, cadvisorMetrics, scrapeError } from './cadvisor-metrics.ts';
import { KeptSample } from './kept-sample.ts';
import type { StatsWish } from './node-stats.ts';
import { resourceMetrics } from './resource-metrics.ts';
import type { StatsProvider } from './stats-provider.ts';
import { summaryOf } from './summary.ts';

/** What is told of the node and its pods to others. */
export interface StatsPages {
  summary(wish: StatsWish, signal: AbortSignal): Promise<object>;
  /** The text of a page of metrics. One whose look failed says so. */
  resourceMetrics(signal: AbortSignal): Promise<string>;
  cadvisorMetrics(signal: AbortSignal): Promise<string>;
}

export interface StatsPagesDeps extends Omit<CadvisorSources, 'written'> {
  readonly logger: Logger;
  readonly provider: StatsProvider;
}

/** The many files of all cgroups are read for all who ask at once, and for those who ask soon after. */
const cgroupsForMs = 10_000;

export function statsPages(deps: StatsPagesDeps): StatsPages {
  const { clock, logger, provider } = deps;
  const onError = (error: unknown) => logger.error('Cannot collect a metric', error);
  const resources = new MetricRegistry({ onError });
  resources.collect(async (signal) => {
    const stats = await provider.stats('cpu-and-memory', signal).catch((error) => {
      signal.throwIfAborted();
      logger.warn('Cannot find out what is used', { problem: describeError(error) });
      return undefined;
    });
    return resourceMetrics(stats);
  });
  const cgroups = new MetricRegistry({ onError });
  const sources: CadvisorSources = { ...deps, written: (signal) => provider.written(signal) };
  cgroups.collect((signal) =>
    cadvisorMetrics(sources, signal).catch((error) => {
      signal.throwIfAborted();
      logger.warn('Cannot find out what cgroups use', { problem: describeError(error) });
      return [scrapeError(1)];
    }),
  );
  const page = new KeptSample(clock, (signal) => cgroups.expose(signal));
  return {
    summary: async (wish, signal) => summaryOf(await provider.stats(wish, signal), wish),
    resourceMetrics: (signal) => resources.expose(signal),
    cadvisorMetrics: (signal) => page.get((_, ageMs) => ageMs < cgroupsForMs, signal),
  };
}
