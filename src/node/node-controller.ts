import type { ApiClient, PatchSchema } from '../api/index.ts';
import type { ContainerImage } from '../kinds/index.ts';
import {
  allOrAbort,
  type Clock,
  type HintLatch,
  type Logger,
  type LogOnce,
  type Random,
} from '../lib/index.ts';
import { PolledAddresses } from './addresses.ts';
import { NodeImages } from './images.ts';
import type {
  AddressProvider,
  HeartbeatConnections,
  NodeHealth,
  NodeMachineInfo,
  NodeRecorder,
  NodeResources,
  NodeRuntime,
  NodeVolumes,
} from './inputs.ts';
import { NodeLease } from './lease.ts';
import { FactReader } from './node-facts.ts';
import { NodeLog } from './node-log.ts';
import { NodeStatusWriter } from './node-status-writer.ts';
import type { NodeView } from './node-view.ts';
import { PodCidrs } from './pod-cidrs.ts';
import { Registration } from './registration.ts';
import { checkNodeSettings, type NodeSettings } from './settings.ts';
import { StatusLoop } from './status-loop.ts';

export interface NodeControllerDeps {
  readonly settings: NodeSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly problems: LogOnce;
  /**
   * The API client for heartbeats only: without rate limit, each call with a deadline well below
   * the lease duration.
   */
  readonly api: Pick<ApiClient, 'get' | 'create' | 'update' | 'patch'>;
  readonly connections: HeartbeatConnections;
  /** The newest version of this Node. */
  readonly view: NodeView;
  /** Raised to request an immediate status update: the runtime recovered, a pressure began, a shutdown. */
  readonly hints: HintLatch;
  readonly schema: PatchSchema;
  readonly recorder: NodeRecorder;
  readonly machine: NodeMachineInfo;
  readonly resources: NodeResources;
  readonly runtime: NodeRuntime;
  readonly health: NodeHealth;
  readonly volumes?: NodeVolumes | undefined;
  /** An external source of the node's addresses. */
  readonly addresses?: AddressProvider | undefined;
}

/** Maintains a Node object: its registration, its status and its lease. */
export class NodeController {
  readonly #loop: StatusLoop;
  readonly #lease: NodeLease;
  readonly #images: NodeImages;
  readonly #polled: PolledAddresses | undefined;

  /** Creates the controller of the node. Throws NODE_SETTINGS for invalid settings. */
  constructor(deps: NodeControllerDeps) {
    checkNodeSettings(deps.settings);
    const logger = deps.logger.child({ room: 'node' });
    const log = new NodeLog(logger, deps.problems);
    const { view } = deps;
    const shared = { ...deps, log };
    this.#images = new NodeImages(deps);
    this.#polled = polled(deps, logger, () => deps.hints.raise());
    const logOutcome = (about: string, error: unknown) => log.outcome(`watch ${about}`, error);
    const facts = new FactReader({
      ...deps,
      images: this.#images,
      provider: this.#polled,
      onResult: logOutcome,
    });
    const writer = new NodeStatusWriter({ ...shared, facts, cidrs: new PodCidrs(shared) });
    const registration = new Registration({ ...shared, facts, writer });
    this.#loop = new StatusLoop({ ...shared, writer, registration });
    this.#lease = new NodeLease({ ...shared, node: view });
  }

  /** All images of the node, including those that the Node object omits. */
  get images(): readonly ContainerImage[] {
    return this.#images.all;
  }

  /**
   * Registers the node and maintains it until aborted; rejects with the signal's reason, or with
   * NODE_GONE. May be called only once.
   */
  async run(signal: AbortSignal): Promise<never> {
    return await allOrAbort(async (inner) => {
      const [ended] = await Promise.all([
        this.#loop.run(inner),
        this.#lease.run(inner),
        ...(this.#polled === undefined ? [] : [this.#polled.run(inner)]),
      ]);
      return ended;
    }, signal);
  }
}

function polled(deps: NodeControllerDeps, logger: Logger, changed: () => void): PolledAddresses | undefined {
  const { addresses: provider, settings, clock, random } = deps;
  if (provider === undefined) return undefined;
  return new PolledAddresses({ provider, nodeName: settings.name, clock, random, logger, changed });
}
