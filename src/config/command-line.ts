import { isIP } from 'node:net';
import { posix } from 'node:path';
import {
  boolFlag,
  choiceFlag,
  durationFlag,
  type Flag,
  type FlagKind,
  type FlagTable,
  type FlagValues,
  flagError,
  formatFlagHelp,
  intFlag,
  KubelingError,
  listFlag,
  mapFlag,
  parseFlags,
  stringFlag,
  tryParseQuantity,
} from '../lib/index.ts';
import { checkDeeply } from './decode.ts';
import { type Field, type FieldFlag, type Fields, hasSecrets, type ValueType } from './fields.ts';
import { type Finding, fieldPath, findingIn, type Origin } from './findings.ts';
import { type KubeletFlags, nodeFlags, removedFlags, runFlags } from './kubelet-flags.ts';
import { type RawValue, toRawValue } from './raw-values.ts';
import { wireValue } from './render.ts';
import { sections } from './schema.ts';

/** The value that a command-line flag sets for a field of the configuration. */
export interface FlagSetting {
  readonly path: readonly string[];
  readonly written: RawValue;
}

export interface CommandLine {
  readonly flags: KubeletFlags;
  readonly settings: readonly FlagSetting[];
  readonly warnings: readonly Finding[];
  readonly problems: readonly Finding[];
}

/**
 * Parses the command line and collects every problem. Relative paths are resolved against `cwd`.
 */
export function parseCommandLine(argv: readonly string[], cwd: string): CommandLine {
  const configFlags = collectConfigFlags();
  const table = kubeletFlagTable(configFlags);
  const parsed = parseFlags(table, argv);
  const given = new Map<string, unknown>(Object.entries(parsed.values));
  const settings = configFlags.filter(({ flag }) => given.has(flag.name));
  return {
    flags: readKubeletFlags(parsed.values as OwnValues, cwd),
    settings: settings.map((setting) => settingOf(setting, given.get(setting.flag.name), cwd)),
    warnings: [
      ...parsed.used.flatMap((name) => warnDeprecated(name, table)),
      ...writtenIps(parsed.values as OwnValues)
        .filter(isNoIp)
        .map(leftOut),
    ],
    problems: [
      ...parsed.problems.map(({ flag, message }) => findingIn(flag, message)),
      ...parsed.positionals.map((word) =>
        findingIn('command line', `takes flags only: ${JSON.stringify(word)} belongs to none`),
      ),
      ...settings.flatMap((setting) => checkSetting(setting, given.get(setting.flag.name))),
    ],
  };
}

interface ConfigFlag {
  readonly flag: FieldFlag;
  readonly field: Field;
  readonly path: readonly string[];
  readonly group: string;
}

/** Returns every flag that sets a field, in the order of the configuration table. */
function collectConfigFlags(): readonly ConfigFlag[] {
  return sections.flatMap(([title, fields]) => flagsIn(fields, [], title));
}

function flagsIn(fields: Fields, parents: readonly string[], group: string): ConfigFlag[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const path = [...parents, name];
    if (field.flag !== undefined) return [{ flag: field.flag, field, path, group }];
    return field.type.kind === 'object' ? flagsIn(field.type.fields, path, group) : [];
  });
}

/**
 * Returns all flags of `kubeling run`: current ones first, then those that should be set in a
 * configuration file instead.
 */
export function kubeletFlagTable(configFlags = collectConfigFlags()): FlagTable {
  const asFlags = configFlags.map((entry) => [entry.flag.name, configFlag(entry)] as const);
  const isCurrent = ([, flag]: readonly [string, Flag<unknown>]) => flag.deprecated === undefined;
  return {
    ...runFlags,
    ...nodeFlags,
    ...Object.fromEntries(asFlags.filter(isCurrent)),
    ...Object.fromEntries(asFlags.filter((entry) => !isCurrent(entry))),
    ...removedFlags,
  };
}

function configFlag({ flag, field, path, group }: ConfigFlag): Flag<unknown> {
  const kind = withoutSecrets(field.type, flag.syntax ?? kindOf(field.type));
  const about = {
    kind,
    help: field.doc,
    default: describeDefault(field),
    ...(flag.name === 'v' && { short: 'v' }),
  };
  if (flag.standing === 'current') return { ...about, group };
  return { ...about, group: `${group} (better in a file)`, deprecated: `set ${path.join('.')} in a file` };
}

/**
 * Describes the default of a field for the help; empty for defaults that are off or empty, and for
 * lists and maps.
 */
function describeDefault(field: Field): string {
  const value = wireValue(field.type, field.default);
  return typeof value === 'object' || !value || value === '0s' ? '' : String(value);
}

/** The maximum number of choices listed in the help. */
const maxChoices = 6;

/** Returns how the flag of a field with an ordinary type is parsed. */
function kindOf(type: ValueType): FlagKind<unknown> {
  switch (type.kind) {
    case 'bool':
      return boolFlag;
    case 'int':
      return intFlag(type.min, type.max);
    case 'duration':
      return durationFlag;
    case 'quantity':
      return quantityFlag;
    case 'list':
      return listFlag(kindOf(type.item));
    case 'map':
      return mapFlag(kindOf(type.item));
    default: {
      const choices = type.kind === 'text' ? (type.choices ?? []) : [];
      return choices.length > 0 && choices.length <= maxChoices ? choiceFlag(choices) : stringFlag;
    }
  }
}

const quantityFlag: FlagKind<unknown> = {
  label: 'quantity',
  read(text) {
    const quantity = tryParseQuantity(text);
    if (quantity === undefined) throw flagError('a quantity such as 512, 1K or 2Ki', text);
    return quantity;
  },
};

/** Hides the value in error messages of a flag that contains secrets. */
function withoutSecrets(type: ValueType, kind: FlagKind<unknown>): FlagKind<unknown> {
  if (!hasSecrets(type)) return kind;
  return {
    ...kind,
    read(text, previous) {
      try {
        return kind.read(text, previous);
      } catch {
        throw new KubelingError('FLAG_INVALID', `must be ${kind.label}: current value is hidden`);
      }
    },
  };
}

function settingOf({ flag, field, path }: ConfigFlag, value: unknown, cwd: string): FlagSetting {
  const isPath = field.type.kind === 'text' && field.type.path !== undefined;
  const origin: Origin = { kind: 'flag', flag: `--${flag.name}` };
  return { path, written: toRawValue(field.type, isPath ? absolute(String(value), cwd) : value, origin) };
}

function checkSetting({ flag, field, path }: ConfigFlag, value: unknown): Finding[] {
  const name = path.reduce((parent, part) => fieldPath(parent, part), '');
  const wrong = checkDeeply(field.type, value, name);
  return wrong.map((problem) => findingIn(`--${flag.name}`, problem.message, problem.path));
}

function warnDeprecated(name: string, table: FlagTable): Finding[] {
  const instead = table[name]?.deprecated;
  return instead === undefined ? [] : [findingIn(`--${name}`, `is deprecated: ${instead}`)];
}

function absolute(path: string, cwd: string): string {
  return path === '' || posix.isAbsolute(path) ? path : posix.join(cwd, path);
}

/**
 * Creates the warning for an invalid node IP, which is ignored as by the Go kubelet, because a node
 * that starts without it can be inspected.
 */
function leftOut(text: string): Finding {
  return findingIn('--node-ip', `must be IP addresses: ${JSON.stringify(text)} is left out`);
}

function writtenIps(values: OwnValues): readonly string[] {
  return (values['node-ip'] ?? []).map((ip) => ip.trim()).filter((ip) => ip !== '');
}

function isNoIp(text: string): boolean {
  return isIP(text) === 0;
}

type OwnValues = FlagValues<typeof runFlags & typeof nodeFlags & typeof removedFlags>;

function readKubeletFlags(values: OwnValues, cwd: string): KubeletFlags {
  const path = (value: string | undefined, standard = '') => absolute(value ?? standard, cwd);
  return {
    config: path(values.config),
    configDir: path(values['config-dir']),
    validateConfig: values['validate-config'] ?? false,
    printConfig: values['print-config'] ?? false,
    help: values.help ?? false,
    version: values.version === 'false' ? '' : (values.version ?? ''),
    lockFile: path(values['lock-file']),
    exitOnLockContention: values['exit-on-lock-contention'] ?? false,
    notifyReady: values['notify-ready'] ?? 'started',
    kubeconfig: path(values.kubeconfig),
    bootstrapKubeconfig: path(values['bootstrap-kubeconfig']),
    hostnameOverride: (values['hostname-override'] ?? '').trim().toLowerCase(),
    nodeIps: writtenIps(values).filter((ip) => !isNoIp(ip)),
    nodeLabels: values['node-labels'] ?? {},
    cloudProvider: values['cloud-provider'] ?? '',
    keepApiPods: values['keep-api-pods'] ?? false,
    streamAuthorization: values['stream-authorization'] ?? 'create',
    afterNodeDeletion: values['after-node-deletion'] ?? 're-register',
    // The root directory is not normalized here: a path with `..` or doubled slashes is rejected
    // instead.
    rootDir: values['root-dir'] ?? nodeFlags['root-dir'].default,
    certDir: path(values['cert-dir'], nodeFlags['cert-dir'].default),
    runtimeCgroups: values['runtime-cgroups'] ?? '',
    imageCredentialProviderConfig: path(values['image-credential-provider-config']),
    imageCredentialProviderBinDir: path(values['image-credential-provider-bin-dir']),
    hookTimeoutMs: values['hook-timeout'],
    emptyDirQuota: values['empty-dir-quota'] ?? false,
    evictionMemoryGuard: values['eviction-memory-guard'] ?? false,
    detachDeadVolumes: values['detach-dead-volumes'] ?? false,
    shutdownOnSigterm: values['shutdown-on-sigterm'] ?? false,
    kubepodsWeight: values['kubepods-weight'] ?? 'capacity',
    housekeepingIntervalMs: values['housekeeping-interval'],
    minimumContainerTtlMs: values['minimum-container-ttl-duration'] ?? 0,
    maxDeadContainersPerContainer: values['maximum-dead-containers-per-container'] ?? 1,
    maxDeadContainers: values['maximum-dead-containers'] ?? -1,
    experimentalMounterPath: path(values['experimental-mounter-path']),
    ignoreEvictionInAllocatable: values['experimental-allocatable-ignore-eviction'] ?? false,
  };
}

/** Returns the help of all flags of `kubeling run`, for `--help`. */
export function kubeletFlagHelp(width = 100): string {
  return `Usage: kubeling run [flags]

Runs the pods of this node. Values come from the defaults, then --config, then --config-dir in the order of
the names, then the flags; the last one counts. Flags may be written with - or _.

${formatFlagHelp(kubeletFlagTable(), width)}`;
}

/**
 * Returns the values of the flags that do not set a field of the configuration, by flag name, in
 * the syntax of the command line. None of them contains a secret.
 */
export function flagTexts(flags: KubeletFlags): Readonly<Record<string, string>> {
  const names = Object.entries(flags).filter(([, value]) => value !== undefined);
  return Object.fromEntries(names.map(([name, value]) => [flagNameOf(name), textOf(value)]));
}

/** Fields whose flag is not named after the field. */
const renamed: Readonly<Record<string, string>> = {
  nodeIps: 'node-ip',
  minimumContainerTtlMs: 'minimum-container-ttl-duration',
  maxDeadContainersPerContainer: 'maximum-dead-containers-per-container',
  maxDeadContainers: 'maximum-dead-containers',
  ignoreEvictionInAllocatable: 'experimental-allocatable-ignore-eviction',
};

function flagNameOf(field: string): string {
  // Removes the suffix Ms, which only kubeling's own names of duration fields have.
  const plain = field.replace(/Ms$/, '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return renamed[field] ?? plain;
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(',');
  if (typeof value !== 'object' || value === null) return String(value);
  return Object.entries(value)
    .map(([key, part]) => `${key}=${part}`)
    .join(',');
}
