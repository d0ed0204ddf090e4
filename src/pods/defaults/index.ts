export { withPodDefaults } from './pod.ts';
