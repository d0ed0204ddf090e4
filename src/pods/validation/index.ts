export { refusedReferences } from './api-references.ts';
export {
  configKey,
  dnsLabel,
  dnsSubdomain,
  ipAddress,
  labelValue,
  pathWithoutBacksteps,
  portName,
  qualifiedName,
} from './names.ts';
export { validatePod, validateStoredPod } from './pod.ts';
export type { TextRule } from './report.ts';
