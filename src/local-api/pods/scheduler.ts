import { type ApiResource, apiResources, type JsonObject } from '../../api/index.ts';
import { type Logger, randomHex } from '../../lib/index.ts';
import {
  type ApiLoop,
  type ApiUser,
  keyOf,
  type ObjectChange,
  type ResourceEntry,
  StatusError,
  type StoredObject,
  type World,
} from '../api/index.ts';
import { keyedLoop } from '../controllers/keyed-controller.ts';
import { placementOf } from './node-fit.ts';
import { conditionsOf, typed, withCondition } from './pod-object.ts';

export interface AutoBinderOptions {
  readonly world: World;
  readonly entryOf: (resource: ApiResource) => ResourceEntry;
  readonly logger: Logger;
}

const scheduler = 'default-scheduler';
const schedulerUser: ApiUser = { name: 'system:kube-scheduler', groups: ['system:authenticated'] };

/** Puts each pod that has no node on the node there is, as a scheduler would, and says of the others why not. */
export class AutoBinder implements ApiLoop {
  readonly name = 'auto-bind';
  readonly #options: AutoBinderOptions;

  constructor(options: AutoBinderOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { world, logger } = this.#options;
    const loop = keyedLoop({
      name: this.name,
      world,
      log: logger,
      first: () => this.#waiting(),
      keysOf: (change) => this.#concerned(change),
      look: (key) => this.#look(key),
    });
    await loop.run(signal);
  }

  #waiting(): readonly string[] {
    return this.#options.world.objects.all(apiResources.pods).filter(isWaiting).map(podKey);
  }

  /** A change of a node may be what some pods wait for. */
  #concerned({ type, resource, object }: ObjectChange): readonly string[] {
    if (resource.plural === 'nodes') return this.#waiting();
    if (resource.plural !== 'pods' || type === 'DELETED') return [];
    return isWaiting(object) ? [podKey(object)] : [];
  }

  #look(key: string): undefined {
    const { objects } = this.#options.world;
    const [namespace = '', name = ''] = key.split('/');
    const pod = objects.get(apiResources.pods, namespace, name);
    if (pod === undefined || !isWaiting(pod)) return undefined;
    const placement = placementOf(pod, objects.all(apiResources.nodes));
    if (placement.kind === 'on') this.#bind(pod, placement.node);
    else this.#tellWhyNot(pod, placement.why);
    return undefined;
  }

  /** The way of any scheduler: what may not be bound is refused there. */
  #bind(pod: StoredObject, node: string): void {
    const { name, namespace, uid } = pod.metadata;
    const body = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name, namespace, uid },
      target: { kind: 'Node', name: node },
    };
    this.#call(apiResources.pods, { verb: 'create', namespace, name, subresource: 'binding', body });
    this.#record(pod, {
      type: 'Normal',
      reason: 'Scheduled',
      action: 'Binding',
      message: `Successfully assigned ${namespace}/${name} to ${node}`,
    });
  }

  /** Once for each reason: the same one again is no news. */
  #tellWhyNot(pod: StoredObject, message: string): void {
    const { name, namespace } = pod.metadata;
    const known = conditionsOf(pod).find(({ type }) => type === 'PodScheduled');
    if (known?.['reason'] === 'Unschedulable' && known['message'] === message) return;
    const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message } as const;
    const body = withCondition(pod, condition, this.#options.world.clock);
    this.#call(apiResources.pods, { verb: 'update', namespace, name, subresource: 'status', body });
    this.#record(pod, { type: 'Warning', reason: 'FailedScheduling', action: 'Scheduling', message });
  }

  /** What became of a pod matters more than that it was told. */
  #record(pod: StoredObject, told: JsonObject): void {
    const { world, logger } = this.#options;
    const { name, namespace, uid, resourceVersion } = pod.metadata;
    const body = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `${name}.${randomHex(world.random, 16)}`, namespace },
      involvedObject: { kind: 'Pod', namespace, name, uid, apiVersion: 'v1', resourceVersion },
      ...told,
      eventTime: microTime(world.clock.now()),
      reportingComponent: scheduler,
      reportingInstance: `${scheduler}-kubeling`,
    };
    try {
      this.#call(apiResources.events, { verb: 'create', namespace, body });
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      logger.warn('Cannot record an event of a pod', { pod: `${namespace}/${name}`, error: error.message });
    }
  }

  #call(resource: ApiResource, call: Pick<Call, 'verb' | 'body'> & Partial<Call>): void {
    const { world, entryOf } = this.#options;
    world.carryOut({
      namespace: undefined,
      name: undefined,
      subresource: undefined,
      ...call,
      user: schedulerUser,
      entry: entryOf(resource),
      query: new URLSearchParams(),
      patch: undefined,
      dryRun: false,
      warn: () => {},
    });
  }
}

type Call = Pick<Parameters<World['carryOut']>[0], 'verb' | 'body' | 'namespace' | 'name' | 'subresource'>;

function podKey({ metadata }: StoredObject): string {
  return keyOf(metadata.namespace, metadata.name);
}

/** Whether a pod waits for a node, and nobody else is to find it one. */
function isWaiting(pod: StoredObject): boolean {
  const { nodeName, schedulerName, schedulingGates = [] } = typed(pod).spec;
  const phase = pod.status?.['phase'];
  return (
    !nodeName &&
    schedulingGates.length === 0 &&
    schedulerName === scheduler &&
    pod.metadata.deletionTimestamp === undefined &&
    phase !== 'Succeeded' &&
    phase !== 'Failed'
  );
}

function microTime(at: number): string {
  return new Date(at).toISOString().replace(/Z$/, '000Z');
}
