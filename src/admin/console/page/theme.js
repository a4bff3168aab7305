// Before anything is drawn: the theme that was chosen here, else the one that the system prefers.
const theme = localStorage.getItem("theme");
if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
