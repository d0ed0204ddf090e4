import { apiResources, isJsonObject, type JsonObject } from '../../api/index.ts';
import {
  type ApiCall,
  badRequest,
  conflict,
  detailsOf,
  type FieldCause,
  notFound,
  type ResourceEntry,
  type ResourceStrategy,
  type ServerContext,
  StatusError,
  type StoredObject,
} from '../api/index.ts';
import { topologyLabels } from './admission/pod-admission.ts';
import { conditionsOf, typed, withCondition, withFields } from './pod-object.ts';

interface Binding {
  readonly metadata?: {
    readonly name?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly target?: { readonly kind?: string; readonly name?: string };
}

/**
 * The strategy of the resource `bindings`: a posted Binding names its pod in its metadata, not in
 * the request path.
 */
export function bindingsStrategy(pods: () => ResourceEntry): ResourceStrategy {
  return {
    handlers: {
      '': (call, context) => {
        const { name = '' } = ((call.body ?? {}) as Binding).metadata ?? {};
        return bindPod({ ...call, entry: pods(), name, subresource: 'binding' }, context);
      },
    },
  };
}

/** Binds a pod to a node. */
export function bindPod(call: ApiCall, context: ServerContext): JsonObject {
  const { namespace, name = '' } = call;
  const binding = (call.body ?? {}) as Binding;
  const { metadata = {}, target = {} } = binding;
  if (metadata.name !== undefined && metadata.name !== name)
    throw badRequest('name in URL does not match name in Binding object');
  checkTarget(target);
  const pod = context.objects.get(apiResources.pods, namespace, name);
  if (pod === undefined) throw notFound({ resource: apiResources.pods, name });
  checkBindable(pod, metadata);
  const body = boundPod(pod, binding, context);
  context.updateSubresource({ ...call, body }, 'binding');
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };
}

function checkTarget({ kind = '', name = '' }: NonNullable<Binding['target']>): void {
  const causes: readonly FieldCause[] = [
    ...(kind === '' || kind === 'Node'
      ? []
      : [
          {
            reason: 'FieldValueNotSupported',
            field: 'target.kind',
            message: `Unsupported value: "${kind}": supported values: "Node", "<empty>"`,
          } as const,
        ]),
    ...(name === ''
      ? [{ reason: 'FieldValueRequired', field: 'target.name', message: 'Required value' } as const]
      : []),
  ];
  if (causes.length === 0) return;
  const messages = causes.map(({ field, message }) => `${field}: ${message}`);
  // kube-apiserver responds with 500, not 422, to an invalid binding.
  const message = messages.length === 1 ? (messages[0] ?? '') : `[${messages.join(', ')}]`;
  throw new StatusError({ code: 500, reason: '', message });
}

function checkBindable(pod: StoredObject, { uid, resourceVersion }: NonNullable<Binding['metadata']>): void {
  const { metadata } = pod;
  const about = { resource: apiResources.pods, name: metadata.name };
  for (const [what, expected, actual] of [
    ['UID', uid, metadata.uid],
    ['ResourceVersion', resourceVersion, metadata.resourceVersion],
  ] as const)
    if (expected && expected !== actual)
      throw conflict(
        about,
        `Precondition failed: ${what} in precondition: ${expected}, ${what} in object meta: ${actual}`,
      );
  const why = unbindable(pod);
  if (why !== undefined) throw bindingConflict(metadata.name, why);
}

function unbindable(pod: StoredObject): string | undefined {
  const { name, deletionTimestamp } = pod.metadata;
  const { nodeName, schedulingGates = [] } = typed(pod).spec;
  if (deletionTimestamp !== undefined) return `pod ${name} is being deleted, cannot be assigned to a host`;
  if (nodeName) return `pod ${name} is already assigned to node "${nodeName}"`;
  return schedulingGates.length > 0 ? `pod ${name} has non-empty .spec.schedulingGates` : undefined;
}

function bindingConflict(name: string, why: string): StatusError {
  return new StatusError({
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on pods/binding "${name}": ${why}`,
    details: detailsOf({ resource: apiResources.pods, name }, 'pods/binding'),
  });
}

/**
 * The complete pod after its binding; the subresource update takes only the mutable fields from it.
 */
function boundPod(
  pod: StoredObject,
  { metadata = {}, target = {} }: Binding,
  context: ServerContext,
): JsonObject {
  const node = target.name ?? '';
  const labels = { ...pod.metadata.labels, ...metadata.labels, ...topologyLabels(context.objects, node) };
  const annotations = { ...pod.metadata.annotations, ...metadata.annotations };
  const scheduled = withCondition(pod, { type: 'PodScheduled', status: 'True' }, context.clock);
  return {
    ...scheduled,
    metadata: withFields(pod.metadata, {
      labels: Object.keys(labels).length === 0 ? undefined : labels,
      annotations: Object.keys(annotations).length === 0 ? undefined : annotations,
    }),
    spec: { ...pod.spec, nodeName: node },
  };
}

export function bindingUpdate(before: StoredObject, binding: JsonObject): StoredObject {
  const next = binding as StoredObject;
  const { nominatedNodeName: _, ...status } = before.status ?? {};
  return {
    ...before,
    spec: { ...before.spec, nodeName: next.spec?.['nodeName'] },
    status: { ...status, conditions: conditionsOf(next) },
  };
}

/** Evicts a pod: sets the DisruptionTarget condition and deletes it. */
export function evictPod(call: ApiCall, context: ServerContext): JsonObject {
  const { namespace, name = '' } = call;
  const body = isJsonObject(call.body) ? call.body : {};
  const metadata = isJsonObject(body['metadata']) ? body['metadata'] : {};
  if (metadata['name'] !== undefined && metadata['name'] !== name)
    throw badRequest('name in URL does not match name in Eviction object');
  const pod = context.objects.get(apiResources.pods, namespace, name);
  if (pod === undefined) throw notFound({ resource: apiResources.pods, name });
  const options = isJsonObject(body['deleteOptions']) ? body['deleteOptions'] : {};
  const dryRun = call.dryRun || isDryRun(options);
  checkUid(pod, options);
  const updated = dryRun ? pod : setDisruptionTarget(call, context, pod);
  deletePod({ ...call, dryRun }, context, withCurrentPrecondition(options, pod, updated));
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };
}

function isDryRun({ dryRun }: JsonObject): boolean {
  return Array.isArray(dryRun) && dryRun.length > 0;
}

function preconditionsOf({ preconditions }: JsonObject): JsonObject {
  return isJsonObject(preconditions) ? preconditions : {};
}

function checkUid({ metadata }: StoredObject, options: JsonObject): void {
  const { uid } = preconditionsOf(options);
  if (typeof uid !== 'string' || uid === '' || uid === metadata.uid) return;
  const why = `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`;
  throw conflict({ resource: { ...apiResources.pods, plural: 'Pod' }, name: metadata.name }, why);
}

function setDisruptionTarget(call: ApiCall, context: ServerContext, pod: StoredObject): StoredObject {
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  } as const;
  const body = withCondition(pod, condition, context.clock);
  return context.updateSubresource({ ...call, body }, 'status');
}

/**
 * Setting the condition changes the resourceVersion, so the precondition of the deletion is
 * updated.
 */
function withCurrentPrecondition(options: JsonObject, pod: StoredObject, updated: StoredObject): JsonObject {
  const preconditions = preconditionsOf(options);
  if (preconditions['resourceVersion'] !== pod.metadata.resourceVersion) return options;
  const { resourceVersion } = updated.metadata;
  return { ...options, preconditions: { ...preconditions, resourceVersion } };
}

function deletePod(call: ApiCall, context: ServerContext, body: JsonObject): void {
  context.execute({ ...call, verb: 'delete', subresource: undefined, patch: undefined, body });
}
