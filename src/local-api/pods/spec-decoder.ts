import { isJsonObject, type JsonObject } from '../../api/index.ts';
import type { Container, PodSpec } from '../../kinds/index.ts';
import { decodeJson, KindTable } from '../../kinds/index.ts';
import type { FeatureGate } from '../../pods/index.ts';
import { badRequest, type StoredObject } from '../api/index.ts';
import { withFields } from './pod-object.ts';

/** Feature gates that are off by default in this release. */
const offGates: ReadonlySet<string> = new Set([
  'ContainerStopSignals',
  'GenericWorkload',
  'TaintTolerationComparisonOperators',
  'UserNamespacesHostNetworkSupport',
]);

export const isFeatureEnabled: FeatureGate = (gate) => !offGates.has(gate);

/** Decodes pod specs: drops unknown fields and disabled features and normalizes quantities. */
export class SpecDecoder {
  #table: KindTable | undefined;

  /** The schema of pods, which is loaded when the first pod is decoded. */
  get table(): KindTable {
    this.#table ??= new KindTable();
    return this.#table;
  }

  decode({ spec = {} }: StoredObject): PodSpec {
    const { value, findings } = decodeJson<PodSpec>(this.table, 'PodSpec', withoutZeroValues(spec));
    const wrong = findings.filter(({ severity }) => severity === 'error');
    if (wrong.length > 0) throw undecodable(wrong.map(({ field, message }) => `spec.${field} ${message}`));
    return withoutDisabled({ ...value, containers: value.containers ?? [] });
  }
}

function undecodable(why: readonly string[]): Error {
  return badRequest(`Pod in version "v1" cannot be handled as a Pod: ${why.join(', ')}`);
}

function withoutDisabled(spec: PodSpec): PodSpec {
  return withFields(spec, {
    schedulingGroup: undefined,
    containers: spec.containers.map(withoutStopSignal),
    initContainers: spec.initContainers?.map(withoutStopSignal),
    ephemeralContainers: spec.ephemeralContainers?.map(withoutStopSignal),
  });
}

function withoutStopSignal<T extends Container>(container: T): T {
  const { lifecycle } = container;
  if (lifecycle?.stopSignal === undefined) return container;
  const { stopSignal: _, ...rest } = lifecycle;
  const { lifecycle: __, ...others } = container;
  return (Object.keys(rest).length === 0 ? others : { ...others, lifecycle: rest }) as T;
}

/**
 * The names of fields whose zero value differs from unset. For most other fields the two are equal,
 * and clients may omit a zero value in updates.
 */
const meaningfulFields: ReadonlySet<string> = new Set([
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

/** Maps with user-defined keys; an empty map is equal to unset. */
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

/**
 * Paths of fields where a zero value is equal to unset, although it differs for other fields of the
 * same name.
 */
const meaninglessPaths: ReadonlySet<string> = new Set([
  'env.value',
  'imagePullSecrets.name',
  'ports.name',
  'tolerations.key',
  'tolerations.operator',
  'tolerations.value',
]);

/** Paths of further fields where a zero value differs from unset. */
const meaningfulPaths: ReadonlySet<string> = new Set([
  'containers.restartPolicy',
  'initContainers.restartPolicy',
  'lifecycle.stopSignal',
]);

/** Volume types whose fields keep their zero values. */
const meaningfulVolumeTypes: ReadonlySet<string> = new Set(['csi', 'azureDisk', 'fc']);

/** The spec without fields that are equal to unset. */
function withoutZeroValues(value: JsonObject, under = ''): JsonObject {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, field]) =>
      isZeroValue(name, field, under) ? [] : [[name, within(field, name)] as const],
    ),
  );
}

function within(field: unknown, name: string): unknown {
  if (Array.isArray(field))
    return field.map((item) => (isJsonObject(item) ? withoutZeroValues(item, name) : item));
  return isJsonObject(field) && !maps.has(name) ? withoutZeroValues(field, name) : field;
}

function isZeroValue(name: string, field: unknown, under: string): boolean {
  if (Array.isArray(field)) return field.length === 0;
  if (isJsonObject(field)) return maps.has(name) && Object.keys(field).length === 0;
  if (field !== false && field !== 0 && field !== '') return false;
  const place = `${under}.${name}`;
  if (meaninglessPaths.has(place)) return true;
  return !meaningfulFields.has(name) && !meaningfulPaths.has(place) && !meaningfulVolumeTypes.has(under);
}
