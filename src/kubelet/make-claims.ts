import { join } from 'node:path';
import { type PodUid, podUid } from '../pods/index.ts';
import { DraDrivers, DraManager, draMetrics } from '../resources/index.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import type { KubeletSettings } from './settings.ts';

/** Resource claims of pods, and the drivers that make them ready. */
export interface NodeClaims {
  readonly drivers: DraDrivers;
  readonly manager: DraManager;
}

const mostBytes = 16 * 2 ** 20;

/** Undefined for a node that no API gives claims, or that has no plugins. */
export function makeClaims(
  { rootDir }: Pick<KubeletSettings, 'rootDir'>,
  deps: Pick<KubeletDeps, 'clock' | 'logger' | 'metrics' | 'machine' | 'cluster'>,
  mayRun: (uid: PodUid) => boolean,
): NodeClaims | undefined {
  const { clock, logger, metrics, machine, cluster } = deps;
  const { plugins: host, files } = machine;
  const fetchClaim = cluster?.resourceClaim;
  if (host === undefined || fetchClaim === undefined) return undefined;
  const path = join(rootDir, 'dra_manager_state');
  const observer = draMetrics(metrics, () => manager.inUse);
  const drivers = new DraDrivers({ open: (socket) => host.open(socket), clock, observer });
  const manager: DraManager = new DraManager({
    drivers,
    fetchClaim,
    file: {
      read: async () => (await files.readEnd(path, mostBytes))?.toString('utf8'),
      write: (text) => files.replace(path, text, { mode: 0o600 }),
    },
    mayRun: (uid) => mayRun(podUid(uid)),
    clock,
    logger,
    observer,
  });
  return { drivers, manager };
}
