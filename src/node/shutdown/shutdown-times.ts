import type { Clock, Logger, MetricRegistry } from '../../lib/index.ts';
import type { RuntimeFiles } from '../../runtime/index.ts';

export interface ShutdownTimesDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly files: Pick<RuntimeFiles, 'readEnd' | 'replace'>;
}

/** Times of the last shutdown, which the next kubelet process also exports. */
export function shutdownTimes(
  path: string,
  { clock, metrics, files, logger }: ShutdownTimesDeps,
): (when: 'start' | 'end') => void {
  const gauges = shutdownMetrics(metrics);
  const show = ({ startTime, endTime }: ShutdownTimes) => {
    gauges.start.set(secondsOf(startTime));
    gauges.end.set(secondsOf(endTime));
  };
  const before = files.readEnd(path, 4_096).then((text) => text && show(JSON.parse(text.toString('utf8'))));
  before.catch((error: unknown) => logger.error('Failed to read times of last node shutdown', error));
  let times: ShutdownTimes = {};
  return (when) => {
    const now = new Date(clock.now()).toISOString();
    times = when === 'start' ? { startTime: now } : { ...times, endTime: now };
    show(times);
    files
      .replace(path, JSON.stringify(times), { mode: 0o600 })
      .catch((error: unknown) => logger.error('Failed to save time of node shutdown', error));
  };
}

interface ShutdownTimes {
  readonly startTime?: string;
  readonly endTime?: string;
}

function secondsOf(time: string | undefined): number {
  return time === undefined ? 0 : (Date.parse(time) || 0) / 1_000;
}

function shutdownMetrics(registry: MetricRegistry) {
  const gauge = (when: string) =>
    registry
      .gauge({
        name: `kubelet_graceful_shutdown_${when}_time_seconds`,
        help: `When ending the pods for a shutdown of the machine last came to its ${when}, in seconds since 1970.`,
      })
      .with({});
  return { start: gauge('start'), end: gauge('end') };
}
