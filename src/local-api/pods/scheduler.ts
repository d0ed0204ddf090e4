import { type ApiResource, apiResources, type JsonObject } from '../../api/index.ts';
import { type Logger, nextTurn, randomHex } from '../../lib/index.ts';
import {
  type ApiUser,
  type Controller,
  type ResourceEntry,
  type ServerContext,
  StatusError,
  type StoredChange,
  type StoredObject,
  storedObjectKey,
} from '../api/index.ts';
import { isLarge } from '../api/stored-object.ts';
import { keyedController } from '../controllers/keyed-controller.ts';
import { findNode } from './node-fit.ts';
import { conditionsOf, typed, withCondition } from './pod-object.ts';

export interface SchedulerOptions {
  readonly context: ServerContext;
  readonly entryOf: (resource: ApiResource) => ResourceEntry;
  readonly logger: Logger;
}

const schedulerName = 'default-scheduler';
const schedulerUser: ApiUser = { name: 'system:kube-scheduler', groups: ['system:authenticated'] };

/**
 * A minimal scheduler: binds each pending pod to a matching node and reports the others as
 * unschedulable.
 */
export class Scheduler implements Controller {
  readonly name = 'auto-bind';
  readonly #options: SchedulerOptions;

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { context, logger } = this.#options;
    const loop = keyedController({
      name: this.name,
      context: context,
      log: logger,
      initialKeys: () => this.#pendingPods(),
      keysFor: (change) => this.#podsAffectedBy(change),
      reconcile: (key) => this.#schedule(key),
    });
    await loop.run(signal);
  }

  #pendingPods(): readonly string[] {
    return this.#options.context.objects.all(apiResources.pods).filter(isUnscheduled).map(podKey);
  }

  /** A changed node may make pods schedulable. */
  #podsAffectedBy({ type, resource, object }: StoredChange): readonly string[] {
    if (resource.plural === 'nodes') return this.#pendingPods();
    if (resource.plural !== 'pods' || type === 'DELETED') return [];
    return isUnscheduled(object) ? [podKey(object)] : [];
  }

  async #schedule(key: string): Promise<undefined> {
    const { objects } = this.#options.context;
    const [namespace = '', name = ''] = key.split('/');
    const find = () => objects.get(apiResources.pods, namespace, name);
    const created = find();
    if (created === undefined) return undefined;
    // A binding validates the pod again: a large pod is bound in a later event loop iteration than
    // that of its creation.
    if (isLarge(created)) await nextTurn();
    const pod = find();
    if (pod === undefined || !isUnscheduled(pod)) return undefined;
    const placement = findNode(pod, objects.all(apiResources.nodes));
    if (placement.kind === 'on') this.#bind(pod, placement.node);
    else this.#markUnschedulable(pod, placement.why);
    return undefined;
  }

  /** Uses the binding subresource, which rejects pods that must not be bound. */
  #bind(pod: StoredObject, node: string): void {
    const { name, namespace, uid } = pod.metadata;
    const body = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name, namespace, uid },
      target: { kind: 'Node', name: node },
    };
    this.#call(apiResources.pods, { verb: 'create', namespace, name, subresource: 'binding', body });
    this.#recordEvent(pod, {
      type: 'Normal',
      reason: 'Scheduled',
      action: 'Binding',
      message: `Successfully assigned ${namespace}/${name} to ${node}`,
    });
  }

  /** The PodScheduled condition is written only if its message has changed. */
  #markUnschedulable(pod: StoredObject, message: string): void {
    const { name, namespace } = pod.metadata;
    const known = conditionsOf(pod).find(({ type }) => type === 'PodScheduled');
    if (known?.['reason'] === 'Unschedulable' && known['message'] === message) return;
    const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message } as const;
    const body = withCondition(pod, condition, this.#options.context.clock);
    this.#call(apiResources.pods, { verb: 'update', namespace, name, subresource: 'status', body });
    this.#recordEvent(pod, { type: 'Warning', reason: 'FailedScheduling', action: 'Scheduling', message });
  }

  /** A failure to record an event must not fail the scheduling. */
  #recordEvent(pod: StoredObject, fields: JsonObject): void {
    const { context, logger } = this.#options;
    const { name, namespace, uid, resourceVersion } = pod.metadata;
    const body = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `${name}.${randomHex(context.random, 16)}`, namespace },
      involvedObject: { kind: 'Pod', namespace, name, uid, apiVersion: 'v1', resourceVersion },
      ...fields,
      eventTime: microTime(context.clock.now()),
      reportingComponent: schedulerName,
      reportingInstance: `${schedulerName}-kubeling`,
    };
    try {
      this.#call(apiResources.events, { verb: 'create', namespace, body });
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      logger.warn('Failed to record pod event', { pod: `${namespace}/${name}`, error: error.message });
    }
  }

  #call(resource: ApiResource, call: Pick<Call, 'verb' | 'body'> & Partial<Call>): void {
    const { context, entryOf } = this.#options;
    context.execute({
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

type Call = Pick<
  Parameters<ServerContext['execute']>[0],
  'verb' | 'body' | 'namespace' | 'name' | 'subresource'
>;

function podKey({ metadata }: StoredObject): string {
  return storedObjectKey(metadata.namespace, metadata.name);
}

/** Whether the pod is pending and assigned to this scheduler. */
function isUnscheduled(pod: StoredObject): boolean {
  const { spec } = typed(pod);
  const { nodeName, schedulingGates = [] } = spec;
  const phase = pod.status?.['phase'];
  return (
    !nodeName &&
    schedulingGates.length === 0 &&
    spec.schedulerName === schedulerName &&
    pod.metadata.deletionTimestamp === undefined &&
    phase !== 'Succeeded' &&
    phase !== 'Failed'
  );
}

function microTime(at: number): string {
  return new Date(at).toISOString().replace(/Z$/, '000Z');
}
