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
/** The Kubernetes version from which a runtime must report its cgroup driver. */
const requiredFrom = '1.37.0';

/**
 * Returns the cgroup driver that the runtime reports, because the kubelet and the runtime must use
 * the same one; the configured driver if the runtime reports none. Throws the last error of the
 * runtime, or CGROUP_DRIVER for an unknown driver.
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
        deps.logger.info('Using cgroup driver reported by the runtime instead of the configured one', {
          driver,
          configured,
        });
      return driver;
    }
    default:
      throw new KubelingError(
        'CGROUP_DRIVER',
        `Cannot determine the cgroup driver as the runtime must report cgroupfs or systemd: current value is ${reported}`,
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
        logger.info('Using configured cgroup driver, because the runtime reports none');
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
