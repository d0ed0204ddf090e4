import { type CommandLine, type FlagSetting, parseCommandLine } from './command-line.ts';
import type { ConfigFiles } from './config-file.ts';
import { type DocumentKind, findDropIns, readConfigFile } from './config-file.ts';
import type { DecodedDocument } from './decode.ts';
import { checkFeatureGates, FeatureGates } from './feature-gates.ts';
import { byDefault, configInvalid, type Finding, type Origins, topField } from './findings.ts';
import type { KubeletFlags } from './kubelet-flags.ts';
import { emptyRawMap, mergeRawValues, type RawMap, replaceRawValue } from './raw-values.ts';
import { deriveDefaults, resolveFields } from './resolve-fields.ts';
import { apiVersion, type KubeletConfiguration, kind, kubeletConfigurationFields } from './schema.ts';
import { reportGates, validate } from './validate.ts';

export interface LoadDeps {
  readonly files: ConfigFiles;
  /** The directory against which relative paths on the command line are resolved. */
  readonly cwd: string;
}

/**
 * The complete configuration, known before the kubelet starts. By default unauthenticated access is
 * disabled, also on a node without an API server that could review tokens and access.
 */
export interface LoadedConfig {
  readonly config: KubeletConfiguration;
  readonly flags: KubeletFlags;
  readonly gates: FeatureGates;
  readonly origins: Origins;
  /** Warnings to log or print; none of them prevents the start of the kubelet. */
  readonly warnings: readonly Finding[];
  /** The absolute paths of the files that were read, in order. */
  readonly configFiles: readonly string[];
}

const document: DocumentKind = { apiVersions: [apiVersion], kind, fields: kubeletConfigurationFields };

/**
 * Loads the configuration: defaults, then the file, then drop-ins, then flags. Rejects with
 * CONFIG_INVALID, whose `details.problems` contains all problems. Prints nothing and changes
 * nothing.
 */
export async function loadConfig(
  argv: readonly string[],
  deps: LoadDeps,
  signal: AbortSignal = new AbortController().signal,
): Promise<LoadedConfig> {
  const line = parseCommandLine(argv, deps.cwd);
  const layers = await readLayers(line.flags, deps.files, signal);
  const resolved = resolveConfig(line, layers);
  if (resolved.problems.length > 0) throw configInvalid(resolved.problems);
  return { ...resolved.loaded, flags: line.flags, configFiles: layers.files };
}

interface Layers {
  readonly files: readonly string[];
  readonly documents: readonly DecodedDocument[];
  readonly warnings: readonly Finding[];
  readonly problems: readonly Finding[];
}

async function readLayers(flags: KubeletFlags, files: ConfigFiles, signal: AbortSignal): Promise<Layers> {
  const dropIns =
    flags.configDir === ''
      ? { files: [], warnings: [], problems: [] }
      : await findDropIns(flags.configDir, files, signal);
  const sources = [
    ...(flags.config === '' ? [] : [{ kind: 'file', path: flags.config } as const]),
    ...dropIns.files.map((path) => ({ kind: 'drop-in', path }) as const),
  ];
  const documents: DecodedDocument[] = [];
  for (const source of sources) documents.push(await readConfigFile(document, source, files, signal));
  return {
    files: sources.map((source) => source.path),
    documents,
    warnings: dropIns.warnings,
    problems: [...dropIns.problems, ...documents.flatMap((decoded) => decoded.problems)],
  };
}

interface ResolvedConfig {
  readonly loaded: Omit<LoadedConfig, 'flags' | 'configFiles'>;
  readonly problems: readonly Finding[];
}

function resolveConfig(line: CommandLine, layers: Layers): ResolvedConfig {
  const unreadable = [...line.problems, ...layers.problems];
  const written = applyFlags(mergeLayers(layers.documents), line.settings);
  const { value, origins: plainOrigins } = resolveFields(kubeletConfigurationFields, written);
  // The cast is safe: the type is derived from the table with which the value was resolved.
  const plain = value as unknown as KubeletConfiguration;
  const gateFindings = reportGates(checkFeatureGates(plain.featureGates), plainOrigins);
  const gates = new FeatureGates(plain.featureGates);
  const { config, origins } = deriveDefaults(plain, plainOrigins, gates);
  const judged = validate({ config, gates, flags: line.flags }, origins, [
    ...unreadable,
    ...gateFindings.problems,
  ]);
  return {
    loaded: {
      config,
      gates,
      origins,
      warnings: [...line.warnings, ...layers.warnings, ...gateFindings.warnings, ...judged.warnings],
    },
    problems: [...unreadable, ...gateFindings.problems, ...judged.problems],
  };
}

function mergeLayers(documents: readonly DecodedDocument[]): RawMap {
  return documents.reduce((merged, { written }) => mergeRawValues(merged, written), emptyRawMap(byDefault));
}

/**
 * Applies flags: each replaces the value of the files completely, also a map; only feature gates
 * are merged one by one.
 */
function applyFlags(written: RawMap, settings: readonly FlagSetting[]): RawMap {
  return settings.reduce((tree, setting) => {
    const field = topField(setting.path[0] ?? '');
    if (field !== 'featureGates') return replaceRawValue(tree, setting.path, setting.written);
    return mergeRawValues(tree, {
      ...emptyRawMap(setting.written.origin),
      entries: new Map([[field, setting.written]]),
    });
  }, written);
}
