import type { Clock, Logger, MetricRegistry } from '../../lib/index.ts';
import type { RuntimeFiles } from '../../runtime/index.ts';

export interface ShutdownTimesDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly files: Pick<RuntimeFiles, 'readEnd' | 'replace'>;
}

/** When pods were last ended with the machine; the next kubelet on the same files shows it too. */
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
  before.catch((error: unknown) => logger.error('Cannot read when the node was last shut down', error));
  let times: ShutdownTimes = {};
  return (when) => {
    const now = new Date(clock.now()).toISOString();
    times = when === 'start' ? { startTime: now } : { ...times, endTime: now };
    show(times);
    files
      .replace(path, JSON.stringify(times), { mode: 0o600 })
      .catch((error: unknown) => logger.error('Cannot note when the node is shut down', error));
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
