export {
  type DockerConfig,
  parseDockerCfg,
  parseDockerConfigJson,
  type RegistryLogin,
} from './docker-config.ts';
export { type PluginCommand, type PluginOutput, processPlugins, type RunPlugin } from './exec-plugin.ts';
export { Keyring } from './keyring.ts';
export { NodeDockerConfig, type NodeDockerConfigDeps } from './node-docker-config.ts';
export { pluginMetrics } from './plugin-metrics.ts';
export {
  type PluginObserver,
  PluginProvider,
  type PluginProviderDeps,
  type PluginSpec,
} from './plugin-provider.ts';
export { PodCredentials, type PodCredentialsDeps } from './pod-credentials.ts';
export {
  type CredentialProvider,
  type CredentialSource,
  noCredentials,
  type PullCredential,
} from './pull-credential.ts';
export { noPullSecrets, type PullSecrets } from './pull-secrets.ts';
export {
  noServiceAccounts,
  type PodTokenRequest,
  type ServiceAccountFacts,
  type ServiceAccounts,
} from './service-accounts.ts';
