import type { CriClient } from '../cri/index.ts';
import {
  type CgroupHost,
  type Clock,
  detectCgroupLayout,
  type Logger,
  type MetricRegistry,
} from '../lib/index.ts';
import type { ObservedPod, Pod, PodUid } from '../pods/index.ts';
import type { VolumeSpaceAt } from '../volumes/index.ts';
import type { StatsMachine } from './node-stats.ts';
import type { PodSubject } from './pod-subjects.ts';
import type { StatsProvider } from './stats-provider.ts';
import type { StatsEndpoints } from './summary.ts';
import type { MeasuredDirectory } from './volume-usages.ts';

/** The settings of the kubelet that concern usage statistics. */
export interface StatisticsSettings {
  readonly nodeName: string;
  readonly rootDir: string;
  readonly podLogsDir: string;
  readonly sandboxesDir?: string | undefined;
  readonly runtimeSocket?: string | undefined;
  readonly volumeStatsMs?: number | undefined;
  readonly capacity: { readonly milliCpu: number; readonly memoryBytes: number };
  readonly node: { readonly swapCapacity: bigint };
  readonly systemCgroups?: Readonly<Record<string, string | undefined>> | undefined;
}

export interface StatisticsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: MetricRegistry;
  readonly cri: Pick<CriClient, 'listContainerStats' | 'imageFsInfo'>;
  readonly machine: { readonly stats?: StatsMachine | undefined; readonly cgroups: CgroupHost };
}

export interface StatisticsParts {
  /** Returns the last observation of all pods in the runtime. */
  readonly observed: () => readonly ObservedPod[];
  readonly known: (uid: PodUid) => Pod | undefined;
  readonly cgroupOf: (pod: Pod) => string;
  /** Path of the parent cgroup of all pods; undefined when pods have no cgroups. */
  readonly podsCgroup: string | undefined;
  readonly directoriesOf: (pod: Pod) => readonly MeasuredDirectory[];
  /** Reads the space of volumes; undefined on a machine without access to volume files. */
  readonly space: VolumeSpaceAt | undefined;
}

interface Opened {
  readonly provider: StatsProvider;
  readonly pages: StatsEndpoints;
}

const minuteMs = 60_000;

/**
 * Usage statistics of the node and its pods. The modules that read them are loaded on first use.
 */
export class Statistics implements Disposable {
  readonly #settings: StatisticsSettings;
  readonly #deps: StatisticsDeps;
  readonly #parts: StatisticsParts;
  #opened: Promise<Opened | undefined> | undefined;

  constructor(settings: StatisticsSettings, deps: StatisticsDeps, parts: StatisticsParts) {
    this.#settings = settings;
    this.#deps = deps;
    this.#parts = parts;
    if (deps.machine.stats !== undefined)
      deps.metrics.collect(async (signal) => [
        {
          name: 'kubelet_container_log_filesystem_used_bytes',
          type: 'gauge',
          help: 'What the logs of the container take of the disk.',
          samples: await this.#logSizes(signal),
        },
      ]);
  }

  /**
   * Returns the stats provider for decisions of the kubelet such as eviction; undefined when the
   * machine provides no stats.
   */
  async provider(): Promise<StatsProvider | undefined> {
    return (await this.#open())?.provider;
  }

  /**
   * Returns the stats endpoints of the kubelet API; undefined when the machine provides no stats.
   */
  async pages(): Promise<StatsEndpoints | undefined> {
    return (await this.#open())?.pages;
  }

  /** Stops reading statistics and closes all files. */
  [Symbol.dispose](): void {
    this.#deps.machine.stats?.directories[Symbol.dispose]?.();
    void this.#opened?.then((opened) => opened?.provider[Symbol.dispose]());
  }

  async #logSizes(signal: AbortSignal) {
    const sizes = (await (await this.provider())?.logSizes(signal)) ?? [];
    return sizes.map(({ usedBytes: value, ...labels }) => ({ labels, value }));
  }

  #open(): Promise<Opened | undefined> {
    this.#opened ??= this.#load();
    return this.#opened;
  }

  async #load(): Promise<Opened | undefined> {
    const { clock, logger, cri } = this.#deps;
    const { stats: machine, cgroups: host } = this.#deps.machine;
    if (machine === undefined) return undefined;
    const { StatsProvider, VolumeUsages, podSubjects, createStatsEndpoints } = await import('./index.ts');
    const { observed, known, cgroupOf, directoriesOf, space } = this.#parts;
    const { volumeStatsMs: periodMs = minuteMs, capacity } = this.#settings;
    const systemCgroups = this.#systemCgroups();
    const shared = {
      clock,
      host,
      machine,
      layout: await detectCgroupLayout(host),
      pods: (): readonly PodSubject[] => podSubjects(observed(), known, cgroupOf),
      systemCgroups,
    };
    const { directories } = machine;
    const provider = new StatsProvider({
      ...this.#settings,
      ...shared,
      cri,
      volumes:
        periodMs > 0 && space !== undefined
          ? new VolumeUsages({ clock, periodMs, space, directories, directoriesOf })
          : undefined,
    });
    const pages = createStatsEndpoints({
      ...shared,
      logger,
      provider,
      otherCgroups: ['/', ...Object.values(systemCgroups)],
      capacity: {
        cores: capacity.milliCpu / 1_000,
        memoryBytes: capacity.memoryBytes,
        swapBytes: Number(this.#settings.node.swapCapacity),
      },
    });
    return { provider, pages };
  }

  #systemCgroups(): Readonly<Record<string, string>> {
    const all = { ...this.#settings.systemCgroups, pods: this.#parts.podsCgroup };
    const known = Object.entries(all).flatMap(([name, path]) => (path === undefined ? [] : [[name, path]]));
    return Object.fromEntries(known);
  }
}
