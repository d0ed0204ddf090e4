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
  /** The base of relative paths on the command line. */
  readonly cwd: string;
}

/**
 * Everything that is settled before the kubelet starts. The server is closed by default also for a node that
 * stands alone: it then has no API server to ask about tokens and rights, and what answers instead (the
 * embedded API, or nobody but clients with a certificate) is for the server to decide, not for these values.
 */
export interface LoadedConfig {
  readonly config: KubeletConfiguration;
  readonly flags: KubeletFlags;
  readonly gates: FeatureGates;
  readonly origins: Origins;
  /** To be shown or logged; none of these prevents the start of the kubelet. */
  readonly warnings: readonly Finding[];
  /** The files that were read, in order, with absolute paths. */
  readonly configFiles: readonly string[];
}

const document: DocumentKind = { apiVersions: [apiVersion], kind, fields: kubeletConfigurationFields };

/**
 * Defaults, then the file, then drop-ins, then flags. Rejects with CONFIG_INVALID, whose
 * `details.problems` are all problems; prints nothing and changes nothing.
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
  // The type is derived from the table: a resolved value has its shape.
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
 * A flag replaces the value of the files, a map completely; only feature gates are set
 * individually.
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
