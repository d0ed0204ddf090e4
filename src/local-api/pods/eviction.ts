import { apiResources, isJsonObject, type JsonObject } from '../../api/index.ts';
import {
  type ApiCall,
  badRequest,
  conflict,
  notFound,
  type StoredObject,
  type World,
} from '../core/index.ts';
import { withCondition } from './pod-object.ts';

/** Ends a pod for the sake of its node: says so in its conditions, and then deletes it. */
export function evictPod(call: ApiCall, world: World): JsonObject {
  const { namespace, name = '' } = call;
  const body = isJsonObject(call.body) ? call.body : {};
  const metadata = isJsonObject(body['metadata']) ? body['metadata'] : {};
  if (metadata['name'] !== undefined && metadata['name'] !== name)
    throw badRequest('name in URL does not match name in Eviction object');
  const pod = world.objects.get(apiResources.pods, namespace, name);
  if (pod === undefined) throw notFound({ resource: apiResources.pods, name });
  const options = isJsonObject(body['deleteOptions']) ? body['deleteOptions'] : {};
  const dryRun = call.dryRun || isRehearsal(options);
  checkUid(pod, options);
  const told = dryRun ? pod : tellDisruption(call, world, pod);
  deleteIt({ ...call, dryRun }, world, movedOn(options, pod, told));
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };
}

function isRehearsal({ dryRun }: JsonObject): boolean {
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

function tellDisruption(call: ApiCall, world: World, pod: StoredObject): StoredObject {
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  } as const;
  const body = withCondition(pod, condition, world.clock);
  return world.writePart({ ...call, body }, 'status');
}

/** A version that was asked for was that before the condition. */
function movedOn(options: JsonObject, pod: StoredObject, told: StoredObject): JsonObject {
  const preconditions = preconditionsOf(options);
  if (preconditions['resourceVersion'] !== pod.metadata.resourceVersion) return options;
  const { resourceVersion } = told.metadata;
  return { ...options, preconditions: { ...preconditions, resourceVersion } };
}

function deleteIt(call: ApiCall, world: World, body: JsonObject): void {
  world.carryOut({ ...call, verb: 'delete', subresource: undefined, patch: undefined, body });
}
