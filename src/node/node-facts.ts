import type { ContainerImage } from '../kinds/index.ts';
import { type Clock, withDeadline } from '../lib/index.ts';
import type { AddressFacts, LatestAddresses } from './addresses.ts';
import { readDefaultRoutes } from './addresses.ts';
import type { NodeImages } from './images.ts';
import type {
  DeviceCapacity,
  LocalAddress,
  MachineCapacity,
  NodeHealth,
  NodeMachineInfo,
  NodePressure,
  NodeResources,
  NodeRuntime,
  NodeVolumes,
  RuntimeFacts,
} from './inputs.ts';
import type { NodeSettings } from './settings.ts';
import { readSystemInfo, type SystemInfo } from './system-info.ts';

/** The facts about the node that were read at the same time; the status is computed from them. */
export interface NodeFacts {
  readonly addresses: AddressFacts;
  readonly system: SystemInfo;
  readonly machine: MachineCapacity | undefined;
  readonly devices: DeviceCapacity | undefined;
  readonly runtime: RuntimeFacts | undefined;
  readonly images: readonly ContainerImage[];
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  readonly pressures: ReadonlySet<NodePressure>;
  readonly volumesInUse: readonly string[] | undefined;
}

export interface FactSources {
  readonly clock: Clock;
  readonly settings: NodeSettings;
  readonly machine: NodeMachineInfo;
  readonly resources: NodeResources;
  readonly runtime: NodeRuntime;
  readonly health: NodeHealth;
  readonly images: NodeImages;
  readonly volumes?: NodeVolumes | undefined;
  readonly provider?: LatestAddresses | undefined;
  /** Called with the outcome of each read of a fact. */
  readonly onResult: (what: string, error: unknown) => void;
}

const checkMs = 5_000;
const resolveTimeoutMs = 2_000;
/**
 * Facts are read ten times a second while the node starts, so those that change slowly are cached.
 */
const slowFactsForMs = 5_000;

interface SlowFacts {
  readonly readMs: number;
  readonly system: SystemInfo;
  readonly lookedUp: readonly string[];
  readonly routes: AddressFacts['routes'];
}

/**
 * The addresses of the machine with a signature of the interfaces, by which changes are detected
 * cheaply.
 */
interface Local {
  readonly signature: string;
  readonly addresses: readonly LocalAddress[];
}

export type RuntimeQuery = 'query-runtime' | 'last-result';

/** Reads all facts. Rejects only when aborted: unreadable facts are undefined. */
export class FactReader {
  readonly #sources: FactSources;
  #slow: SlowFacts | undefined;
  #local: Local | undefined;

  constructor(sources: FactSources) {
    this.#sources = sources;
  }

  /**
   * Reads the facts. While the node starts, this includes a check of the runtime; later the facts
   * of the runtime come from its last regular check.
   */
  async read(about: RuntimeQuery, signal: AbortSignal): Promise<NodeFacts> {
    const { settings, resources, runtime, health, images, volumes, provider } = this.#sources;
    if (about === 'query-runtime') await this.#checkRuntime(signal);
    const [{ system, lookedUp, routes }, local] = await Promise.all([
      this.#readSlow(signal),
      this.#readLocal(),
      this.#try('images', images.refresh(signal)),
    ]);
    signal.throwIfAborted();
    return {
      addresses: { lookedUp, routes, local, provided: provider?.latest },
      system,
      machine: resources.capacity(),
      devices: resources.devices?.(),
      runtime: runtime.facts(),
      images: images.latest(settings.maxImages),
      problems: health.problems(),
      warnings: health.warnings?.() ?? [],
      pressures: health.pressures(),
      volumesInUse: volumes?.inUse(),
    };
  }

  async #checkRuntime(signal: AbortSignal): Promise<void> {
    const { clock, runtime } = this.#sources;
    const deadline = { clock, ms: checkMs, what: 'check the container runtime' };
    const checked = withDeadline(deadline, (inner) => runtime.check(inner), signal);
    await this.#try('runtime', checked);
  }

  /**
   * Listing interfaces blocks this process on the kernel's network lock, which is slow while
   * networks of many pods are created. So they are listed only when an address may have changed.
   */
  async #readLocal(): Promise<readonly LocalAddress[]> {
    const { machine } = this.#sources;
    const [ipv4, ipv6] = await Promise.all([
      machine.read('/proc/net/fib_trie'),
      machine.read('/proc/net/if_inet6'),
    ]);
    const signature = `${ipv4}${ipv6?.split('\n').filter(isRoutable).join('\n')}`;
    const isKnown = ipv4 !== undefined && this.#local?.signature === signature;
    if (!isKnown) this.#local = { signature, addresses: machine.addresses() };
    return this.#local?.addresses ?? [];
  }

  async #readSlow(signal: AbortSignal): Promise<SlowFacts> {
    const { clock, machine } = this.#sources;
    const readMs = clock.monotonicMs();
    if (this.#slow !== undefined && readMs - this.#slow.readMs < slowFactsForMs) return this.#slow;
    const [system, lookedUp, ipv4 = '', ipv6 = ''] = await Promise.all([
      readSystemInfo(machine),
      this.#lookup(signal),
      machine.read('/proc/net/route'),
      machine.read('/proc/net/ipv6_route'),
    ]);
    this.#slow = { readMs, system, lookedUp, routes: readDefaultRoutes(ipv4, ipv6) };
    return this.#slow;
  }

  /**
   * A node name without DNS records is common and no error, because there are other sources of
   * addresses.
   */
  async #lookup(signal: AbortSignal): Promise<readonly string[]> {
    const { clock, machine, settings } = this.#sources;
    if (settings.ips.some((ip) => ip !== '0.0.0.0' && ip !== '::')) return [];
    const deadline = { clock, ms: resolveTimeoutMs, what: `resolve ${settings.name}` };
    return await withDeadline(deadline, (inner) => machine.lookup(settings.name, inner), signal).catch(
      () => [],
    );
  }

  async #try(what: string, work: Promise<void>): Promise<void> {
    const { onResult } = this.#sources;
    await work.then(
      () => onResult(what, undefined),
      (error: unknown) => onResult(what, error),
    );
  }
}

/**
 * Whether a line of /proc/net/if_inet6 has an address that is not link-local. The interface of each
 * pod has a link-local one, so these are ignored.
 */
function isRoutable(line: string): boolean {
  return !line.startsWith('fe80');
}
