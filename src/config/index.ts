export { type CommandLine, type FlagSetting, kubeletFlagTable, parseCommandLine } from './command-line.ts';
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
export { type ConfigFiles, type DirectoryEntry, hostFiles, memoryFiles } from './file-system.ts';
export { describeFinding, type Finding } from './findings.ts';
export { Fingerprint } from './fingerprint.ts';
export { flagTexts } from './flag-texts.ts';
export { kubeletFlagHelp } from './help.ts';
export type { KubeletFlags } from './kubelet-flags.ts';
export { type LoadDeps, type LoadedConfig, loadConfig } from './load.ts';
export { describeOrigin, type Origin, Origins } from './origins.ts';
export { renderConfig } from './render.ts';
export type { FieldName, KubeletConfiguration } from './schema.ts';
export { maskSecrets, toWire } from './wire.ts';
