import { isJsonObject, type JsonObject } from '../../api/index.ts';

/**
 * A false, 0 or empty text that was written and one that was not are the same thing for most fields; who reads a pod
 * and writes it back may leave them out. These are the fields where not to say it is something else than to say it.
 */
const telling: ReadonlySet<string> = new Set([
  'activeDeadlineSeconds',
  'allowPrivilegeEscalation',
  'apiGroup',
  'automountServiceAccountToken',
  'cachingMode',
  'containerPort',
  'defaultMode',
  'enableServiceLinks',
  'expirationSeconds',
  'fsGroup',
  'fsGroupChangePolicy',
  'gmsaCredentialSpec',
  'gmsaCredentialSpecName',
  'hostnameOverride',
  'hostProcess',
  'hostUsers',
  'image',
  'initiatorName',
  'key',
  'localhostProfile',
  'lun',
  'maxExpirationSeconds',
  'maxSkew',
  'minDomains',
  'mode',
  'mountPath',
  'mountPropagation',
  'name',
  'nodeAffinityPolicy',
  'nodeTaintsPolicy',
  'operator',
  'optional',
  'path',
  'port',
  'preemptionPolicy',
  'priority',
  'privileged',
  'procMount',
  'readOnlyRootFilesystem',
  'recursiveReadOnly',
  'resourceClaimName',
  'resourceClaimTemplateName',
  'runAsGroup',
  'runAsNonRoot',
  'runAsUser',
  'runAsUserName',
  'runtimeClassName',
  'seconds',
  'service',
  'setHostnameAsFQDN',
  'shareProcessNamespace',
  'signerName',
  'storageClassName',
  'terminationGracePeriodSeconds',
  'tolerationSeconds',
  'topologyKey',
  'type',
  'value',
  'volumeAttributesClassName',
  'volumeMode',
  'weight',
  'whenUnsatisfiable',
]);

/** Fields whose keys are the user's own; without a single one they are as good as not there. */
const maps: ReadonlySet<string> = new Set([
  'annotations',
  'labels',
  'limits',
  'matchLabels',
  'nodeSelector',
  'options',
  'overhead',
  'requests',
  'userAnnotations',
  'volumeAttributes',
]);

/** Where a field of such a name says nothing all the same. */
const silentPlaces: ReadonlySet<string> = new Set([
  'env.value',
  'imagePullSecrets.name',
  'ports.name',
  'tolerations.key',
  'tolerations.operator',
  'tolerations.value',
]);

/** And where one of another name does. */
const tellingPlaces: ReadonlySet<string> = new Set([
  'containers.restartPolicy',
  'initContainers.restartPolicy',
  'lifecycle.stopSignal',
]);

/** Kinds of volumes in which also these say something. */
const tellingVolumes: ReadonlySet<string> = new Set(['csi', 'azureDisk', 'fc']);

/** The spec without fields that say nothing. */
export function withoutSilence(value: JsonObject, under = ''): JsonObject {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, field]) =>
      isSilent(name, field, under) ? [] : [[name, within(field, name)] as const],
    ),
  );
}

function within(field: unknown, name: string): unknown {
  if (Array.isArray(field))
    return field.map((item) => (isJsonObject(item) ? withoutSilence(item, name) : item));
  return isJsonObject(field) && !maps.has(name) ? withoutSilence(field, name) : field;
}

function isSilent(name: string, field: unknown, under: string): boolean {
  if (Array.isArray(field)) return field.length === 0;
  if (isJsonObject(field)) return maps.has(name) && Object.keys(field).length === 0;
  if (field !== false && field !== 0 && field !== '') return false;
  const place = `${under}.${name}`;
  if (silentPlaces.has(place)) return true;
  return !telling.has(name) && !tellingPlaces.has(place) && !tellingVolumes.has(under);
}
