import { type Clock, KubelingError, type Logger, withDeadline } from '../../lib/index.ts';
import type { Plugin, PluginChannel, PluginHandler } from '../../plugins/index.ts';
import { type CsiClient, csiClient, csiDeadlineMs } from './csi-client.ts';
import type { CsiObserver } from './csi-metrics.ts';
import type { NodeCapability, NodeGetInfoResponse } from './gen/node.ts';

/** What a driver says of this node. */
export interface CsiNodeFacts {
  readonly driver: string;
  readonly nodeId: string;
  /** Where the node is, in the driver's own words. */
  readonly topology: Readonly<Record<string, string>>;
  /** How many volumes it can have at a time; undefined for any number. */
  readonly maxVolumes: number | undefined;
}

/** Who tells the cluster of drivers; neither waits nor fails. */
export interface CsiNodeReporter {
  /** Why the driver cannot be one of this node, as far as is known. */
  collision(facts: CsiNodeFacts): string | undefined;
  /** It is told by `refused` what it learns only later of why the driver cannot be one of this node. */
  installed(facts: CsiNodeFacts, refused: (why: string) => void): void;
  removed(driver: string): void;
}

export interface CsiDriversDeps {
  readonly open: (socket: string) => PluginChannel;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Nobody unless given. */
  readonly observe?: CsiObserver | undefined;
  /** Undefined on a node without an API server. */
  readonly teller: CsiNodeReporter | undefined;
  /** A driver that is registered cannot be one of this node. */
  readonly refused: (plugin: Plugin, why: string) => void;
  /** A driver that was away is there. */
  readonly arrived: (driver: string) => void;
}

/** A driver that can be asked. */
export interface CsiDriver {
  readonly name: string;
  readonly client: CsiClient;
  readonly can: ReadonlySet<NodeCapability>;
}

interface Registered extends CsiDriver {
  /** The same, for volumes that were described before there was the driver: metrics tell them apart. */
  readonly ofInTree: CsiDriver;
  readonly facts: CsiNodeFacts;
  readonly endpoint: string;
  readonly refuse: (why: string) => void;
  readonly version: Version;
}

type Version = readonly [major: number, minor: number, patch: number];

const mostVolumes = 2 ** 31 - 1;

/** The CSI drivers that have registered with this node. */
export class CsiDrivers implements PluginHandler {
  readonly #deps: CsiDriversDeps;
  readonly #drivers = new Map<string, Registered>();

  constructor(deps: CsiDriversDeps) {
    this.#deps = deps;
  }

  /** To be asked for a volume of that origin. Throws CSI_ABSENT when it is not registered. */
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

  /** Asks the driver how many volumes this node can have now, and tells the cluster if that has changed. */
  async update(name: string, signal: AbortSignal): Promise<void> {
    const before = this.#drivers.get(name);
    if (before === undefined) return;
    const { maxVolumes } = factsOf(name, await before.client.info(signal));
    // Another may have come in its place meanwhile, which was asked itself.
    if (this.#drivers.get(name) !== before || maxVolumes === before.facts.maxVolumes) return;
    const facts = { ...before.facts, maxVolumes };
    this.#drivers.set(name, { ...before, facts });
    this.#deps.teller?.installed(facts, before.refuse);
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
      const collision = this.#deps.teller?.collision(facts);
      if (collision !== undefined) throw refused(collision);
      this.#drivers.get(name)?.client.close();
      const ofInTree = { name, client: clientFor('in-tree'), can };
      const refuse = (why: string) => this.#deps.refused(plugin, why);
      this.#drivers.set(name, { name, endpoint, refuse, version, client, can, facts, ofInTree });
      this.#deps.teller?.installed(facts, refuse);
    } catch (error) {
      client.close();
      throw error;
    }
    this.#deps.logger.info('A CSI driver is registered', { driver: name, endpoint });
    this.#deps.arrived(name);
  }

  /** Calls that are under way end with it: whoever made them asks again later. */
  deregister({ name, endpoint }: Plugin): void {
    const found = this.#drivers.get(name);
    if (found === undefined || found.endpoint !== endpoint) return;
    this.#drivers.delete(name);
    found.client.close();
    this.#deps.teller?.removed(name);
    this.#deps.logger.info('A CSI driver is gone', { driver: name, endpoint });
  }

  #check({ name, endpoint, versions }: Plugin): Version {
    if (name === '') throw refused('it must have a name: it is empty');
    const newest = highest(versions);
    if (newest === undefined)
      throw refused(`none of the versions ${versions.join(', ')} of the CSI driver ${name} is 1.x`);
    const before = this.#drivers.get(name);
    if (before !== undefined && before.endpoint !== endpoint && compare(before.version, newest) >= 0)
      throw refused(`a CSI driver ${name} of the version ${before.version.join('.')} is registered already`);
    return newest;
  }
}

function factsOf(driver: string, info: NodeGetInfoResponse): CsiNodeFacts {
  const { nodeId, maxVolumesPerNode, accessibleTopology } = info;
  if (nodeId === '') throw refused(`the CSI driver ${driver} gives this node an empty ID`);
  const maxVolumes = maxVolumesPerNode > 0n ? Number(BigInt.asUintN(53, maxVolumesPerNode)) : undefined;
  return {
    driver,
    nodeId,
    topology: accessibleTopology?.segments ?? {},
    maxVolumes: maxVolumes === undefined ? undefined : Math.min(maxVolumes, mostVolumes),
  };
}

/** Of those this node speaks. */
function highest(versions: readonly string[]): Version | undefined {
  const parsed = versions.flatMap((text) => {
    const [, major, minor = '0', patch = '0'] = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?/.exec(text) ?? [];
    return major === '1' ? [[1, Number(minor), Number(patch)] as const] : [];
  });
  return parsed.toSorted(compare).at(-1);
}

function compare(one: Version, other: Version): number {
  return one[0] - other[0] || one[1] - other[1] || one[2] - other[2];
}

function refused(why: string): KubelingError {
  return new KubelingError('PLUGIN_REFUSED', why);
}
