import type { CriClient } from '../../cri/index.ts';
import {
  asError,
  type Clock,
  isKind,
  KubelingError,
  type Logger,
  type MetricRegistry,
} from '../../lib/index.ts';

type Driver = 'cgroupfs' | 'systemd';

export interface CgroupDriverDeps {
  readonly cri: Pick<CriClient, 'runtimeConfig'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
}

const tries = 3;
const pauseMs = 2_000;
/** The version from which a runtime has to answer. */
const requiredFrom = '1.37.0';

/**
 * Who makes cgroups: as the runtime says, for both must name them alike; as configured where the runtime does not say.
 * Throws what the runtime fails with time and again, or CGROUP_DRIVER for an answer nobody knows.
 */
export async function runtimeCgroupDriver(
  configured: Driver,
  deps: CgroupDriverDeps,
  signal: AbortSignal,
): Promise<Driver> {
  const reported = await ask(deps, signal);
  switch (reported) {
    case undefined:
      return configured;
    case 'CGROUPFS':
    case 'SYSTEMD': {
      const driver = reported === 'SYSTEMD' ? 'systemd' : 'cgroupfs';
      if (driver !== configured)
        deps.logger.info('The cgroup driver is the one of the runtime', { driver, configured });
      return driver;
    }
    default:
      throw new KubelingError(
        'CGROUP_DRIVER',
        `Cannot tell who makes cgroups as the runtime must answer cgroupfs or systemd: current value is ${reported}`,
      );
  }
}

async function ask({ cri, clock, logger, metrics }: CgroupDriverDeps, signal: AbortSignal) {
  for (let attempt = 1; ; attempt++) {
    try {
      return (await cri.runtimeConfig({}, signal)).linux?.cgroupDriver;
    } catch (error) {
      signal.throwIfAborted();
      if (isKind(error, 'Unsupported')) {
        countLosingSupport(metrics);
        logger.info('The runtime does not say who makes cgroups; taking what is configured');
        return undefined;
      }
      if (attempt === tries) throw asError(error);
      await clock.sleep(pauseMs, signal);
    }
  }
}

function countLosingSupport(metrics: MetricRegistry): void {
  const gauge = metrics.gauge({
    name: 'kubelet_cri_losing_support',
    help: 'The version of Kubernetes from which this runtime is no longer supported.',
    labels: ['version'],
  });
  gauge.with({ version: requiredFrom }).set(1);
}
