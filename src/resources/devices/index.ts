/** The devices of plugins: who offers them, who has them. Loaded when the first plugin comes, or is known from before. */
export { DeviceManager, type DeviceManagerDeps } from './device-manager.ts';
export { deviceMetrics } from './metrics.ts';
export { serveRegistration } from './plugin-registration.ts';
