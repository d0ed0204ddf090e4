export { type RuntimeProblems, RuntimeState, type RuntimeWatch, watchRuntime } from './runtime-state.ts';
export {
  removeSandbox,
  type SelfCheckDeps,
  type SelfCheckPlan,
  selfCheck,
  selfCheckLabel,
} from './self-check.ts';
