import { type Clock, type MetricRegistry, type SampledFamily, withDeadline } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { BlockDevices } from '../block/block-volumes.ts';
import type { CsiSpace } from '../csi/csi-space.ts';
import type { CsiVolumes } from '../csi/csi-volumes.ts';
import type { VolumeFiles, VolumeSpace } from '../files/volume-files.ts';

/**
 * The stats of a mounted claim; fields that the driver or file system does not report are
 * undefined.
 */
type ClaimSpace = CsiSpace;
export type VolumeSpaceAt = (path: string, signal: AbortSignal) => Promise<ClaimSpace>;

/** A mounted claim and its path. */
export interface MountedClaim {
  readonly namespace: string;
  readonly claim: string;
  readonly directory: string;
}

export interface VolumeMetricsDeps {
  readonly clock: Clock;
  readonly pods: () => readonly Pod[];
  readonly volumes: {
    claimsOf(pod: Pod): readonly MountedClaim[];
    pluginsOf(pod: Pod): readonly string[];
    /** Returns the plugins of the mounted volumes of all pods, one entry per volume. */
    mountedPlugins(): readonly string[];
  };
  /**
   * Reads the stats of a volume from its file system or driver. These may never respond, so the
   * implementation must not block this process.
   */
  readonly space: VolumeSpaceAt | undefined;
}

interface Known {
  readonly untilMs: number;
  readonly space: Promise<ClaimSpace | undefined>;
}

const keepMs = 60_000;
/** How long a volume that did not respond is skipped. */
const avoidMs = 300_000;
const deadlineMs = 5_000;
/** Matches the path of a block volume in the `volumeDevices` directory of a pod. */
const devicePath = /\/volumeDevices\/[^/]+\/[^/]+$/;
const labelled = 'of the volume of the claim.';

/** The per-claim gauges, in alphabetical order. */
const gauges: readonly (readonly [name: string, help: string, of: keyof VolumeSpace])[] = [
  ['available_bytes', `Bytes that can still be written ${labelled}`, 'availableBytes'],
  ['capacity_bytes', `Bytes ${labelled}`, 'capacityBytes'],
  ['inodes', `Inodes ${labelled}`, 'inodes'],
  ['inodes_free', `Inodes that are free ${labelled}`, 'inodesFree'],
  ['inodes_used', `Inodes that are used ${labelled}`, 'inodesUsed'],
  ['used_bytes', `Bytes that are used ${labelled}`, 'usedBytes'],
];

/** Reads volume stats for /metrics, at most once a minute per volume. */
export class VolumeMetrics {
  readonly #deps: VolumeMetricsDeps;
  readonly #known = new Map<string, Known>();

  constructor(deps: VolumeMetricsDeps) {
    this.#deps = deps;
  }

  register(registry: MetricRegistry): void {
    const { space } = this.#deps;
    if (space !== undefined) registry.collect((signal) => this.#spaces(space, signal));
    registry.collect(() => [this.#totals()]);
  }

  async #spaces(space: VolumeSpaceAt, signal: AbortSignal): Promise<readonly SampledFamily[]> {
    const claims = new Map<string, MountedClaim>();
    for (const pod of this.#deps.pods())
      for (const found of this.#deps.volumes.claimsOf(pod))
        claims.set(`${found.namespace}/${found.claim}`, found);
    for (const key of this.#known.keys()) if (!claims.has(key)) this.#known.delete(key);
    const rows = await Promise.all(
      [...claims].map(async ([key, { namespace, claim, directory }]) => ({
        labels: { namespace, persistentvolumeclaim: claim },
        space: await this.#spaceOf(key, (inner) => space(directory, inner), signal),
      })),
    );
    const family = (name: string, help: string, value: (space: ClaimSpace) => number | undefined) => ({
      name: `kubelet_volume_stats_${name}`,
      type: 'gauge' as const,
      help,
      samples: rows.map(({ labels, space }) => ({ labels, value: space && value(space) })),
    });
    return [
      ...gauges.map(([name, help, of]) => family(name, help, (space) => space[of])),
      family('health_status_abnormal', `1 for an unsound state ${labelled}`, healthFigure),
    ];
  }

  /**
   * Returns the stats of the volume; undefined if it does not respond. Concurrent calls share the
   * result.
   */
  #spaceOf(
    key: string,
    query: (signal: AbortSignal) => Promise<ClaimSpace>,
    signal: AbortSignal,
  ): Promise<ClaimSpace | undefined> {
    const { clock } = this.#deps;
    const known = this.#known.get(key);
    if (known !== undefined && clock.monotonicMs() < known.untilMs) return known.space;
    const limit = { clock, ms: deadlineMs, what: `ask for the space of the claim ${key}` };
    const response = withDeadline(limit, query, signal).catch(() => {
      this.#known.set(key, {
        untilMs: clock.monotonicMs() + (signal.aborted ? 0 : avoidMs),
        space: response,
      });
      return undefined;
    });
    this.#known.set(key, { untilMs: clock.monotonicMs() + keepMs, space: response });
    return response;
  }

  #totals(): SampledFamily {
    const { pods, volumes } = this.#deps;
    const isOver = ({ status }: Pod) => status.phase === 'Succeeded' || status.phase === 'Failed';
    const desired = pods()
      .filter((pod) => !isOver(pod))
      .flatMap((pod) => volumes.pluginsOf(pod));
    return {
      name: 'volume_manager_total_volumes',
      type: 'gauge',
      help: 'Volumes that pods are to have, and those they have, by plugin.',
      samples: [
        ...countedBy('actual_state_of_world', volumes.mountedPlugins()),
        ...countedBy('desired_state_of_world', desired),
      ],
    };
  }
}

/** Returns the value of the health metric; undefined for a driver without health reports. */
function healthFigure({ health }: ClaimSpace): number | undefined {
  if (health === undefined) return undefined;
  return health === 'abnormal' ? 1 : 0;
}

/**
 * Returns the function that reads the stats of a volume from its CSI driver, file system or block
 * device; undefined on a platform without access to volume files.
 */
export function volumeSpace(
  {
    volumeFiles,
    blockDevices,
  }: {
    readonly volumeFiles?: Pick<VolumeFiles, 'spaceAt'> | undefined;
    readonly blockDevices?: Pick<BlockDevices, 'sizeOf'> | undefined;
  },
  csi: Pick<CsiVolumes, 'spaceAt'> | undefined,
): VolumeSpaceAt | undefined {
  if (volumeFiles === undefined) return undefined;
  return async (path, signal) => {
    const ofDriver = csi?.spaceAt(path, signal);
    if (ofDriver !== undefined) return await ofDriver;
    if (!devicePath.test(path)) return await volumeFiles.spaceAt(path, signal);
    const capacityBytes = await blockDevices?.sizeOf(path);
    return capacityBytes === undefined ? {} : { capacityBytes };
  };
}

function countedBy(state: string, plugins: readonly string[]) {
  return [...Map.groupBy(plugins, (plugin) => plugin)].map(([plugin, all]) => ({
    labels: { plugin_name: plugin, state },
    value: all.length,
  }));
}
