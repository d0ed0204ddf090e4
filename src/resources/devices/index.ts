/**
 * The entry point of the device manager. Loaded when the first plugin registers or a checkpoint
 * exists.
 */
export { DeviceManager, type DeviceManagerDeps } from './device-manager.ts';
export { deviceMetrics } from './metrics.ts';
export { serveRegistration } from './plugin-registration.ts';
