import type { MetricRegistry } from '../../lib/index.ts';
import { type Clock, KubelingError, type Logger, withDeadline } from '../../lib/index.ts';
import type { Plugin, PluginChannel, PluginHandler } from '../../plugins/index.ts';
import { migratedLabel, type VolumePlugin } from '../manager/volume-metrics.ts';
import { type CsiClient, csiClient, csiDeadlineMs } from './csi-client.ts';
import type { NodeCapability, NodeGetInfoResponse } from './gen/node.ts';

/** Result of NodeGetInfo of a driver. */
export interface CsiNodeFacts {
  readonly driver: string;
  readonly nodeId: string;
  /** Topology segments of the node. */
  readonly topology: Readonly<Record<string, string>>;
  /** Maximum number of attached volumes; undefined when there is no limit. */
  readonly maxVolumes: number | undefined;
}

/** Reports registered drivers to the API server; its methods neither block nor fail. */
export interface CsiNodeReporter {
  /**
   * Returns why the driver cannot be registered on this node; undefined when no reason is known.
   */
  collision(facts: CsiNodeFacts): string | undefined;
  /** Reports a registered driver; `onRejected` is called when the API server rejects it later. */
  installed(facts: CsiNodeFacts, onRejected: (why: string) => void): void;
  removed(driver: string): void;
}

export interface CsiDriversDeps {
  readonly open: (socket: string) => PluginChannel;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Observes driver calls; undefined to observe none. */
  readonly observe?: CsiObserver | undefined;
  /** Reports drivers; undefined on a node without an API server. */
  readonly reporter: CsiNodeReporter | undefined;
  /** Called when the API server rejects a driver after its registration. */
  readonly onRejected: (plugin: Plugin, why: string) => void;
  /** Called when a driver has registered. */
  readonly arrived: (driver: string) => void;
}

/** A registered driver with its client and capabilities. */
export interface CsiDriver {
  readonly name: string;
  readonly client: CsiClient;
  readonly can: ReadonlySet<NodeCapability>;
}

interface Registered extends CsiDriver {
  /** This driver as used for migrated in-tree volumes: its calls have another label in metrics. */
  readonly ofInTree: CsiDriver;
  readonly facts: CsiNodeFacts;
  readonly endpoint: string;
  readonly reject: (why: string) => void;
  readonly version: Version;
}

type Version = readonly [major: number, minor: number, patch: number];

const mostVolumes = 2 ** 31 - 1;

/** The CSI drivers that are registered on this node. */
export class CsiDrivers implements PluginHandler {
  readonly #deps: CsiDriversDeps;
  readonly #drivers = new Map<string, Registered>();

  constructor(deps: CsiDriversDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the driver for a CSI volume or, with the origin `in-tree`, for a migrated in-tree
   * volume. Throws CSI_ABSENT when the driver is not registered.
   */
  get(name: string, origin?: 'in-tree'): CsiDriver {
    const found = this.#drivers.get(name);
    if (found !== undefined) return origin === 'in-tree' ? found.ofInTree : found;
    throw new KubelingError(
      'CSI_ABSENT',
      `driver name ${name} not found in the list of registered CSI drivers`,
    );
  }

  names(): readonly string[] {
    return [...this.#drivers.keys()];
  }

  /** Queries the driver's volume limit and reports a change to the API server. */
  async update(name: string, signal: AbortSignal): Promise<void> {
    const before = this.#drivers.get(name);
    if (before === undefined) return;
    const { maxVolumes } = factsOf(name, await before.client.info(signal));
    // If another registration replaced the driver during the call, the limit of the new driver was
    // already queried when it registered.
    if (this.#drivers.get(name) !== before || maxVolumes === before.facts.maxVolumes) return;
    const facts = { ...before.facts, maxVolumes };
    this.#drivers.set(name, { ...before, facts });
    this.#deps.reporter?.installed(facts, before.reject);
  }

  async register(plugin: Plugin, signal: AbortSignal): Promise<void> {
    const { name, endpoint } = plugin;
    const version = this.#check(plugin);
    const { open, clock, observe } = this.#deps;
    const channel = open(endpoint);
    const clientFor = (origin: 'in-tree' | undefined) =>
      csiClient(channel, clock, (method, code, ms) => observe?.(name, { method, code, ms, origin }));
    const client = clientFor(undefined);
    try {
      const deadline = { clock: this.#deps.clock, ms: csiDeadlineMs, what: `ask the driver ${name}` };
      const [info, can] = await withDeadline(
        deadline,
        (inner) => Promise.all([client.info(inner), client.capabilities(inner)]),
        signal,
      );
      const facts = factsOf(name, info);
      const collision = this.#deps.reporter?.collision(facts);
      if (collision !== undefined) throw rejected(collision);
      this.#drivers.get(name)?.client.close();
      const ofInTree = { name, client: clientFor('in-tree'), can };
      const reject = (why: string) => this.#deps.onRejected(plugin, why);
      this.#drivers.set(name, { name, endpoint, reject, version, client, can, facts, ofInTree });
      this.#deps.reporter?.installed(facts, reject);
    } catch (error) {
      client.close();
      throw error;
    }
    this.#deps.logger.info('Registered CSI driver', { driver: name, endpoint });
    this.#deps.arrived(name);
  }

  /** Removes the driver and aborts its calls in flight; their callers retry. */
  deregister({ name, endpoint }: Plugin): void {
    const found = this.#drivers.get(name);
    if (found === undefined || found.endpoint !== endpoint) return;
    this.#drivers.delete(name);
    found.client.close();
    this.#deps.reporter?.removed(name);
    this.#deps.logger.info('Deregistered CSI driver', { driver: name, endpoint });
  }

  #check({ name, endpoint, versions }: Plugin): Version {
    if (name === '') throw rejected('it must have a name: it is empty');
    const newest = highest(versions);
    if (newest === undefined)
      throw rejected(`none of the versions ${versions.join(', ')} of the CSI driver ${name} is 1.x`);
    const before = this.#drivers.get(name);
    if (before !== undefined && before.endpoint !== endpoint && compare(before.version, newest) >= 0)
      throw rejected(`a CSI driver ${name} of the version ${before.version.join('.')} is registered already`);
    return newest;
  }
}

function factsOf(driver: string, info: NodeGetInfoResponse): CsiNodeFacts {
  const { nodeId, maxVolumesPerNode, accessibleTopology } = info;
  if (nodeId === '') throw rejected(`the CSI driver ${driver} gives this node an empty ID`);
  const maxVolumes = maxVolumesPerNode > 0n ? Number(BigInt.asUintN(53, maxVolumesPerNode)) : undefined;
  return {
    driver,
    nodeId,
    topology: accessibleTopology?.segments ?? {},
    maxVolumes: maxVolumes === undefined ? undefined : Math.min(maxVolumes, mostVolumes),
  };
}

/** The newest CSI version that both the driver and the kubelet support. */
function highest(versions: readonly string[]): Version | undefined {
  const parsed = versions.flatMap((text) => {
    const [, major, minor = '0', patch = '0'] = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?/.exec(text) ?? [];
    return major === '1' ? [[1, Number(minor), Number(patch)] as const] : [];
  });
  return parsed.toSorted(compare).at(-1);
}

function compare(left: Version, other: Version): number {
  return left[0] - other[0] || left[1] - other[1] || left[2] - other[2];
}

function rejected(why: string): KubelingError {
  return new KubelingError('PLUGIN_REFUSED', why);
}

/** Observes the result and duration of each driver call; never throws. */
export type CsiObserver = (
  driver: string,
  call: { readonly method: string; readonly code: string; readonly ms: number } & Pick<
    VolumePlugin,
    'origin'
  >,
) => void;

/** Upper bounds of the histogram's buckets in seconds. */
const buckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** Registers the metrics of driver calls; call once per registry. */
export function csiMetrics(registry: MetricRegistry): CsiObserver {
  const durations = registry.histogram({
    name: 'csi_operations_seconds',
    help: 'Time it took CSI drivers to answer, by what they answered.',
    labels: ['driver_name', 'method_name', 'grpc_status_code', 'migrated'],
    buckets,
  });
  return (driver, { method, code, ms, origin }) =>
    durations
      .with({
        driver_name: driver,
        method_name: method,
        grpc_status_code: code,
        migrated: migratedLabel({ origin }),
      })
      .observe(ms / 1_000);
}
