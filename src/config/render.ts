import { formatDurationMs, formatQuantity, isPlainYamlText, type Quantity } from '../lib/index.ts';
import { effectiveName, type Field, type Fields, type ValueType } from './fields.ts';
import { describeOrigin, fieldPath, keyPath, type Origins } from './findings.ts';
import {
  apiVersion,
  type KubeletConfiguration,
  kind,
  kubeletConfigurationFields,
  sections,
} from './schema.ts';

/**
 * Prints the effective configuration as YAML, with the origin after every value: `maxPods: 250 #
 * /etc/kubelet.yaml:12`. Secrets are masked.
 */
export function renderConfig(loaded: {
  readonly config: KubeletConfiguration;
  readonly origins: Origins;
}): string {
  const config = maskSecrets(loaded.config);
  const lines = [`apiVersion: ${apiVersion}`, `kind: ${kind}`];
  for (const [title, fields] of sections) {
    lines.push(
      '',
      `# ${title}`,
      ...renderFields(fields, config, { path: '', indent: '', origins: loaded.origins }),
    );
  }
  return `${lines.join('\n')}\n`;
}

interface Here {
  readonly path: string;
  readonly indent: string;
  readonly origins: Origins;
}

function renderFields(fields: Fields, object: Readonly<Record<string, unknown>>, here: Here): string[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const value = object[effectiveName(name, field.type)];
    const path = fieldPath(here.path, name);
    return value === undefined
      ? []
      : renderValue(`${here.indent}${name}:`, field.type, value, { ...here, path });
  });
}

/** Prints one value after its label, on the same line or on the lines below. */
function renderValue(label: string, type: ValueType, value: unknown, here: Here): string[] {
  const below = renderBelow(type, value, here);
  if (below.length > 0) return [label, ...below];
  return [`${label} ${scalarText(wireValue(type, value))}${originComment(here)}`];
}

/** Prints the lines below the label; none for scalars and empty values. */
function renderBelow(type: ValueType, value: unknown, here: Here): string[] {
  const inner = { ...here, indent: `${here.indent}  ` };
  switch (type.kind) {
    case 'list':
      return renderItems(type.item, value as readonly unknown[], here);
    case 'map': {
      const entries = Object.entries(value as Readonly<Record<string, unknown>>);
      return entries.flatMap(([key, item]) => renderEntry(key, type.item, item, inner));
    }
    case 'object':
      return renderFields(type.fields, value as Readonly<Record<string, unknown>>, inner);
    default:
      return [];
  }
}

function renderEntry(key: string, type: ValueType, item: unknown, here: Here): string[] {
  return renderValue(`${here.indent}${scalarText(key)}:`, type, item, {
    ...here,
    path: keyPath(here.path, key),
  });
}

function renderItems(type: ValueType, items: readonly unknown[], here: Here): string[] {
  return items.flatMap((item, index) => {
    const itemAt = { ...here, path: keyPath(here.path, index), indent: `${here.indent}  ` };
    if (type.kind !== 'object') return renderValue(`${here.indent}-`, type, item, itemAt);
    const lines = renderFields(type.fields, item as Readonly<Record<string, unknown>>, itemAt);
    return lines.map((line, at) => (at === 0 ? `${here.indent}- ${line.slice(itemAt.indent.length)}` : line));
  });
}

function originComment(here: Here): string {
  return `  # ${describeOrigin(here.origins.of(here.path))}`;
}

/** Returns the text, in quotes if a YAML parser could read it as another value. */
function scalarText(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  const simple = /^[A-Za-z0-9/][A-Za-z0-9/._:-]*$/.test(value) && !/:$/.test(value);
  // A text of digits and separators may be a number, date or time for some YAML parser.
  const numeric = /^[\d_.:eExXoObB+-]+$/.test(value);
  return simple && !numeric && isPlainYamlText(value) ? value : JSON.stringify(value);
}

/**
 * Converts the configuration to a v1beta1 document with all defaults, and durations and quantities
 * in canonical form. Reading it as a file gives the same configuration.
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

/** Whether a zero may be omitted because it means the default; durations are always written. */
function isOmitted(field: Field, value: unknown): boolean {
  return field.zero === 'default' && field.type.kind !== 'duration' && isZero(value) && isZero(field.default);
}

function isZero(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return value === 0 || value === '' || value === false;
}

const mask = '<masked>';

/** Returns a copy that may be shown: header values and passwords in URLs are removed. */
export function maskSecrets(config: KubeletConfiguration): KubeletConfiguration {
  const headers = Object.keys(config.staticPodURLHeader).map((name) => [name, [mask]] as const);
  return {
    ...config,
    staticPodURLHeader: Object.fromEntries(headers),
    staticPodURL: config.staticPodURL.replace(/^([a-z]+:\/\/)[^/@]*@/i, `$1${mask}@`),
  };
}
