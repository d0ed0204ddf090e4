/** Discovers, registers and deregisters the node's plugins, which run in separate processes. */
export { hostPluginHost, type PluginChannel, type PluginHost, type PluginSocket } from './plugin-host.ts';
export {
  type Plugin,
  type PluginHandler,
  PluginRegistry,
  type PluginRegistryDeps,
} from './plugin-registry.ts';
