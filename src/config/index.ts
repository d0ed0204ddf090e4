export {
  type CommandLine,
  type FlagSetting,
  flagTexts,
  kubeletFlagHelp,
  kubeletFlagTable,
  parseCommandLine,
} from './command-line.ts';
export { type ConfigFiles, type DirectoryEntry, Fingerprint, hostFiles } from './config-file.ts';
export {
  type CredentialPlugin,
  type CredentialPluginSource,
  type PluginTokenAttributes,
  readCredentialPlugins,
} from './credential-plugins.ts';
export {
  type EvictionRow,
  type EvictionSignal,
  type EvictionThreshold,
  evictionSignals,
  evictionTable,
  evictionThresholds,
  formatThreshold,
  isEvictionSignal,
  parseThreshold,
  type ThresholdValue,
} from './eviction.ts';
export { type GateName, type GateSpec, type GateStage, gateSpecs } from './feature-gate-table.ts';
export { checkFeatureGates, FeatureGates } from './feature-gates.ts';
export { describeFinding, describeOrigin, type Finding, type Origin, Origins } from './findings.ts';
export type { KubeletFlags } from './kubelet-flags.ts';
export { type LoadDeps, type LoadedConfig, loadConfig } from './load.ts';
export { maskSecrets, renderConfig, toWire } from './render.ts';
export type { FieldName, KubeletConfiguration } from './schema.ts';
