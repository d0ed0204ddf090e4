import type { FeatureGates } from './feature-gates.ts';
import { effectiveName, type Field, type Fields, type ValueType } from './fields.ts';
import { byDefault, fieldPath, keyPath, type Origin, Origins } from './findings.ts';
import type { RawMap, RawValue } from './raw-values.ts';
import { type FieldName, type KubeletConfiguration, kubeletConfigurationFields } from './schema.ts';

export interface ResolvedFields {
  readonly value: Readonly<Record<string, unknown>>;
  readonly origins: Origins;
}

/**
 * Computes the effective values of a layer: every field has a value, and every value has an origin.
 */
export function resolveFields(fields: Fields, written: RawMap): ResolvedFields {
  const byPath = new Map<string, Origin>();
  const value = resolveObject(fields, written, '', byPath);
  return { value, origins: new Origins(byPath) };
}

function resolveObject(
  fields: Fields,
  written: RawMap | undefined,
  path: string,
  origins: Map<string, Origin>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const value = resolveField(field, written?.entries.get(name), fieldPath(path, name), origins);
      return [effectiveName(name, field.type), value];
    }),
  );
}

function resolveField(
  field: Field,
  node: RawValue | undefined,
  path: string,
  origins: Map<string, Origin>,
): unknown {
  if (node !== undefined && node.kind !== 'nothing' && !meansDefault(field, node)) {
    return resolveValue(field.type, node, path, origins);
  }
  origins.set(path, byDefault);
  const isObject = field.type.kind === 'object' && field.presence === 'always';
  return isObject ? resolveValue(field.type, undefined, path, origins) : field.default;
}

/** Whether a zero means the default: in most fields of a file, but not on the command line. */
function meansDefault(field: Field, node: RawValue): boolean {
  if (field.zero !== 'default' || node.kind !== 'value' || node.origin.kind === 'flag') return false;
  return node.value === 0 || node.value === '' || node.value === false;
}

function resolveValue(
  type: ValueType,
  node: RawValue | undefined,
  path: string,
  origins: Map<string, Origin>,
): unknown {
  if (node !== undefined) origins.set(path, node.origin);
  if (type.kind === 'object')
    return resolveObject(type.fields, node?.kind === 'map' ? node : undefined, path, origins);
  if (node === undefined || node.kind === 'nothing') return undefined;
  if (type.kind === 'map' && node.kind === 'map') {
    const entries = [...node.entries].filter(([, item]) => item.kind !== 'nothing');
    return Object.fromEntries(
      entries.map(([key, item]) => [key, resolveValue(type.item, item, keyPath(path, key), origins)]),
    );
  }
  if (type.kind === 'list' && node.kind === 'list') {
    return node.items.map((item, index) => resolveValue(type.item, item, keyPath(path, index), origins));
  }
  return node.kind === 'value' ? node.value : undefined;
}

export interface Derived {
  readonly config: KubeletConfiguration;
  readonly origins: Origins;
}

interface Change {
  readonly path: string;
  readonly origin: Origin;
  readonly config: Partial<KubeletConfiguration>;
}

/** Computes the defaults that depend on other settings. */
export function deriveDefaults(config: KubeletConfiguration, origins: Origins, gates: FeatureGates): Derived {
  const changes = [
    ...reportFrequency(config, origins),
    ...parallelPulls(config, origins),
    ...noPidsLimit(config, origins),
    ...evictionDefaults(config, origins),
    ...crashLoop(config, gates),
    ...credentialsPolicy(config, gates),
  ];
  return {
    config: Object.assign({}, config, ...changes.map((change) => change.config)),
    origins: origins.with(changes.map((change) => [change.path, change.origin])),
  };
}

function because(reason: string): Origin {
  return { kind: 'default', because: reason };
}

/**
 * Derives the report frequency only from an update frequency that is set in a file. The flag for
 * the update frequency never changed the report frequency; if it did, the traffic of a cluster
 * would multiply.
 */
function reportFrequency(config: KubeletConfiguration, origins: Origins): Change[] {
  const update = origins.of('nodeStatusUpdateFrequency').kind;
  if (origins.isWritten('nodeStatusReportFrequency') || update === 'default' || update === 'flag') return [];
  return [
    {
      path: 'nodeStatusReportFrequency',
      origin: because('as nodeStatusUpdateFrequency is set'),
      config: { nodeStatusReportFrequencyMs: config.nodeStatusUpdateFrequencyMs },
    },
  ];
}

function parallelPulls(config: KubeletConfiguration, origins: Origins): Change[] {
  if (origins.isWritten('serializeImagePulls') || (config.maxParallelImagePulls ?? 0) < 2) return [];
  const origin = because('as maxParallelImagePulls is 2 or more');
  return [{ path: 'serializeImagePulls', origin, config: { serializeImagePulls: false } }];
}

/** Changes any negative PID limit to -1, which means no limit. */
function noPidsLimit(config: KubeletConfiguration, origins: Origins): Change[] {
  if (config.podPidsLimit >= -1) return [];
  return [{ path: 'podPidsLimit', origin: origins.of('podPidsLimit'), config: { podPidsLimit: -1 } }];
}

/** With `mergeDefaultEvictionSettings`, signals that are not set keep their default threshold. */
function evictionDefaults(config: KubeletConfiguration, origins: Origins): Change[] {
  if (!config.mergeDefaultEvictionSettings || !origins.isWritten('evictionHard')) return [];
  const standard = defaultEvictionHard();
  const missing = Object.keys(standard).filter((signal) => !Object.hasOwn(config.evictionHard, signal));
  const origin = because('as mergeDefaultEvictionSettings is true');
  const evictionHard = { ...standard, ...config.evictionHard };
  return missing.map((signal) => ({ path: `evictionHard[${signal}]`, origin, config: { evictionHard } }));
}

function defaultEvictionHard(): Readonly<Record<string, string>> {
  return kubeletConfigurationFields.evictionHard.default as Readonly<Record<string, string>>;
}

function crashLoop(config: KubeletConfiguration, gates: FeatureGates): Change[] {
  const { maxContainerRestartPeriodMs } = config.crashLoopBackOff;
  if (maxContainerRestartPeriodMs !== undefined || !gates.enabled('KubeletCrashLoopBackOffMax')) return [];
  const crashLoopBackOff = { maxContainerRestartPeriodMs: 300_000 };
  return [
    {
      path: 'crashLoopBackOff.maxContainerRestartPeriod',
      origin: { kind: 'default' },
      config: { crashLoopBackOff },
    },
  ];
}

function credentialsPolicy(config: KubeletConfiguration, gates: FeatureGates): Change[] {
  const path: FieldName = 'imagePullCredentialsVerificationPolicy';
  if (config[path] !== '' || !gates.enabled('KubeletEnsureSecretPulledImages')) return [];
  return [{ path, origin: { kind: 'default' }, config: { [path]: 'NeverVerifyPreloadedImages' } }];
}
