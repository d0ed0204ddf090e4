import { formatDurationMs, formatQuantity, type Quantity } from '../lib/index.ts';
import { effectiveName, type Field, type Fields, type ValueType } from './fields.ts';
import { apiVersion, type KubeletConfiguration, kind, kubeletConfigurationFields } from './schema.ts';

/**
 * The configuration as a v1beta1 document with all defaults filled in, durations and quantities in their
 * canonical spelling. Read again as a file it gives the same configuration.
 */
export function toWire(config: KubeletConfiguration): Readonly<Record<string, unknown>> {
  return { apiVersion, kind, ...wireObject(kubeletConfigurationFields, config) };
}

function wireObject(
  fields: Fields,
  object: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const entries = Object.entries(fields).flatMap(([name, field]) => {
    const value = object[effectiveName(name, field.type)];
    return value === undefined || isOmitted(field, value)
      ? []
      : [[name, wireValue(field.type, value)] as const];
  });
  return Object.fromEntries(entries);
}

export function wireValue(type: ValueType, value: unknown): unknown {
  switch (type.kind) {
    case 'duration':
      return formatDurationMs(value as number);
    case 'quantity':
      return formatQuantity(value as Quantity);
    case 'list':
      return (value as readonly unknown[]).map((item) => wireValue(type.item, item));
    case 'map': {
      const entries = Object.entries(value as Readonly<Record<string, unknown>>);
      return Object.fromEntries(entries.map(([key, item]) => [key, wireValue(type.item, item)]));
    }
    case 'object':
      return wireObject(type.fields, value as Readonly<Record<string, unknown>>);
    default:
      return value;
  }
}

/** A zero is left out where leaving it out says the same; durations are always written. */
function isOmitted(field: Field, value: unknown): boolean {
  return field.zero === 'default' && field.type.kind !== 'duration' && isZero(value) && isZero(field.default);
}

function isZero(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return value === 0 || value === '' || value === false;
}

const mask = '<masked>';

/** A copy that may be shown to anybody: header values and passwords inside URLs are gone. */
export function maskSecrets(config: KubeletConfiguration): KubeletConfiguration {
  const headers = Object.keys(config.staticPodURLHeader).map((name) => [name, [mask]] as const);
  return {
    ...config,
    staticPodURLHeader: Object.fromEntries(headers),
    staticPodURL: config.staticPodURL.replace(/^([a-z]+:\/\/)[^/@]*@/i, `$1${mask}@`),
  };
}
